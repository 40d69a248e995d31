package server

import (
	"sync/atomic"
	"time"
)

// A speed measures how fast places become free. The mutex of [admission] guards all fields except
// tokens.
type speed struct {
	tokens  atomic.Int64 // events of all answers, about one per token
	answers int64        // answers that have left
	of      int64        // tokens when the last of these left
	samples []sample     // about a second apart, of the last [speedWindow]
	next    time.Time    // when the client that was refused last should come again
}

// A sample has the counts at a time.
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

// rate returns the number of answers that leave per second, measured over the samples. If none has
// left in that time, it divides the rate of tokens by the mean length of earlier answers. 0 means
// unknown.
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

// retryAfter returns the number of seconds after which a refused request for n answers should come
// again: when n places are free, after the clients that were refused before it, and at most when
// all places of limit have become free. If the rate is unknown, that is 1 second. For n = 0 it
// returns when a place will be free, and does not delay later clients.
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
