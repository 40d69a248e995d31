package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/realizar/realizar/internal/watch"
)

// serverState is what is known about a watched server.
type serverState struct {
	url      string
	interval time.Duration // between readings

	at      time.Time       // of the last reading
	last    *watch.Sample   // sample from the server, or nil
	between *watch.Interval // the last interval, or nil
	away    error           // why the last reading failed, or nil
	since   time.Time       // when readings began to fail
	anew    time.Time       // when a restart of the server was noticed, or zero
	history history         // tokens of answers a second
}

// take adds a reading.
func (s *serverState) take(r topReading) {
	s.at = r.at
	if r.err != nil {
		if s.away == nil {
			s.since = r.at
		}
		s.away = r.err
		s.history.add(math.NaN())
		return
	}
	s.away = nil
	if s.last != nil {
		s.between = watch.Between(s.last, r.sample)
		s.history.add(s.between.Rate(watch.AnswerTokens))
		if s.between.Restarted {
			s.anew = r.at
		}
	}
	s.last = r.sample
}

// awayText says in a few words why a server cannot be read.
func awayText(err error) string {
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", lookTimeout)
	case errors.As(err, &request):
		err = request.Err
	}
	return briefly(err.Error(), 200)
}

// briefly returns a server's text in one line, of n characters at most.
func briefly(text string, n int) string {
	line := []rune(oneLine(text[:min(len(text), 8*n)]))
	if len(line) > n {
		return string(line[:n-1]) + "…"
	}
	return string(line)
}

// A history holds the values of the last intervals, NaN for those without one.
type history struct {
	values []float64 // the last ones
	count  int       // of all
}

// historyLength is how many values a history has: 5 minutes of seconds.
const historyLength = 300

func (h *history) add(v float64) {
	if len(h.values) == historyLength {
		copy(h.values, h.values[1:])
		h.values = h.values[:historyLength-1]
	}
	h.values = append(h.values, v)
	h.count++
}

// columns are the means of so many neighbours that what may be there at most fits
// width, the last at the end. A value stays with its neighbours when others come.
func (h *history) columns(width int) (means []float64, each int) {
	each = (historyLength + width - 1) / width
	sum, n := 0.0, 0
	for i, v := range h.values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
		if at := h.count - len(h.values) + i; at%each == each-1 || i == len(h.values)-1 {
			means = append(means, sum/float64(n)) // NaN where there is none
			sum, n = 0, 0
		}
	}
	return means[max(0, len(means)-width):], each
}
