package engine

import (
	"slices"
	"time"
)

// callerPatience bounds how long a step waits for callers to say whether they want more tokens. The
// previous step runs meanwhile; the wait is also at most a quarter of the time of such a step.
const callerPatience = time.Millisecond

// awaitCallers waits, while a step is in flight, for callers that may end their answers because of
// their tokens (a stop string), so that such an end wastes no more than the row in that step.
func (e *Engine) awaitCallers() {
	if len(e.flights) == 0 || !slices.ContainsFunc(e.queue.active, (*sequence).mayEnd) {
		return
	}
	wait := min(callerPatience, time.Duration(e.pace.decoding(max(1, e.queue.decoding()))/4*float64(time.Second)))
	expired := wait <= 0
	if !expired {
		timer := time.AfterFunc(wait, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			expired = true
			e.seen.Broadcast()
		})
		defer timer.Stop()
	}
	for !expired && slices.ContainsFunc(e.queue.active, (*sequence).mayEnd) {
		e.seen.Wait()
	}
}

// mayEnd reports whether the caller of s has an unseen token that may make it end the answer.
func (s *sequence) mayEnd() bool {
	return s.run.Ends && s.placed && !s.over && s.chosen() > 0 && int(s.ahead.Load()) > s.coming
}
