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

// serverState is what is known of a server that is watched.
type serverState struct {
	url      string
	interval time.Duration // between looks

	at      time.Time       // of the last look
	last    *watch.Sample   // that the server gave, or nil
	between *watch.Interval // the last one, or nil
	away    error           // why the last look has given none, or nil
	since   time.Time       // away
	anew    time.Time       // when the server was seen to have begun anew, or zero
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

// awayText is why a server does not say how it stands, in a few words.
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

// briefly is a server's text in one line, of n characters at most.
func briefly(text string, n int) string {
	line := []rune(oneLine(text[:min(len(text), 8*n)]))
	if len(line) > n {
		return string(line[:n-1]) + "…"
	}
	return string(line)
}

// A history is the values of the last intervals, NaN where there was none.
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
