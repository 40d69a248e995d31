package engine

import (
	"slices"
	"time"
)

// callerPatience is how long a step waits, at most, for callers to say whether they want more. The
// step before it is under way meanwhile: a quarter of the time that such steps take is not waited
// longer.
const callerPatience = time.Millisecond

// awaitCallers waits, while a step is under way, for callers who may end their answers by what
// their tokens are (a stop string), so that such an end costs no more than the row of that step.
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

// mayEnd says that the caller of s has a token that it has not looked at, and may want no more.
func (s *sequence) mayEnd() bool {
	return s.run.Ends && s.placed && !s.over && s.chosen() > 0 && int(s.ahead.Load()) > s.under
}
