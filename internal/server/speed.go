package server

import (
	"sync/atomic"
	"time"
)

// A speed is how fast places become free. The mutex of [admission] guards it, but for
// tokens.
type speed struct {
	tokens  atomic.Int64 // events of all answers, about as many as tokens
	answers int64        // that have left
	of      int64        // tokens, when the last of these left
	samples []sample     // about a second apart, of the last [speedWindow]
	next    time.Time    // when who was told last to come again does
}

// A sample is what had come by a time.
type sample struct {
	at              time.Time
	answers, tokens int64
}

const (
	speedWindow  = 30 * time.Second
	sampleEvery  = time.Second
	longestRetry = 5 * time.Minute
)

// begin discards the samples from before now, when no request was running.
func (s *speed) begin(now time.Time) {
	s.samples, s.next = s.samples[:0], time.Time{}
	s.sample(now)
}

// left notes that n answers have left.
func (s *speed) left(n int, now time.Time) {
	s.answers += int64(n)
	s.of = s.tokens.Load()
	s.sample(now)
}

func (s *speed) sample(now time.Time) {
	last := len(s.samples) - 1
	if last >= 0 && now.Sub(s.samples[last].at) < sampleEvery {
		return
	}
	old := 0
	for old < last && now.Sub(s.samples[old].at) > speedWindow {
		old++
	}
	s.samples = append(s.samples[:0], s.samples[old:]...)
	s.samples = append(s.samples, sample{now, s.answers, s.tokens.Load()})
}

// rate is how many answers leave a second: as many as did of late, or where none has, as many
// as the tokens of late make that have the length of those before. 0: nothing is known.
func (s *speed) rate(now time.Time) float64 {
	if len(s.samples) == 0 {
		return 0
	}
	from := s.samples[0]
	seconds := now.Sub(from.at).Seconds()
	switch answers, tokens := s.answers-from.answers, s.tokens.Load()-from.tokens; {
	case seconds <= 0:
		return 0
	case answers > 0:
		return float64(answers) / seconds
	case s.answers > 0 && s.of > 0:
		return float64(tokens) / seconds / (float64(s.of) / float64(s.answers))
	}
	return 0
}

// retryAfter is after how many seconds a request for n answers that was refused should come
// again: when as many places are free, after those who were told so before it, and at most when
// all of limit have become free. What is not known is a second. Who asks for none is told when
// there will be one, and nobody waits for that.
func (s *speed) retryAfter(n, limit int, now time.Time) int {
	rate := s.rate(now)
	if rate <= 0 {
		return 1
	}
	wait := func(answers int) time.Duration {
		return time.Duration(min(float64(answers)/rate, longestRetry.Seconds()) * float64(time.Second))
	}
	next := s.next
	if next.Before(now) {
		next = now
	}
	next = next.Add(wait(max(1, min(n, limit))))
	if last := now.Add(max(wait(limit), time.Second)); next.After(last) {
		next = last
	}
	if n > 0 {
		s.next = next
	}
	return max(1, int((next.Sub(now)+time.Second-1)/time.Second))
}
