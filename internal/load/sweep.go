package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Sweep is one measurement after the other, each with more load, until the server gives
// no more for it.
type Sweep struct {
	By     SweepBy
	Values []float64 // ascending: requests at one time, or a second
}

// SweepBy is what a sweep raises.
type SweepBy string

// What a sweep can raise.
const (
	ByConcurrency SweepBy = "concurrency"
	ByRate        SweepBy = "rate"
)

const sweepWanted = "want concurrency or rate, from 1 on, or with :FROM:TO, which doubles, or with the values, such as rate:1,2,3"

// mostSweep is where a sweep ends that has no other end.
const mostSweep = 1 << 14

// ParseSweep reads concurrency or rate; each alone, or followed by :FROM:TO for a value
// that doubles, or by : and the values with commas between them.
func ParseSweep(text string) (Sweep, error) {
	wrong := func() (Sweep, error) { return Sweep{}, fmt.Errorf("%.60q is no sweep: %s", text, sweepWanted) }
	parts := strings.Split(text, ":")
	s := Sweep{By: SweepBy(parts[0])}
	if s.By != ByConcurrency && s.By != ByRate || len(parts) > 3 {
		return wrong()
	}
	from, to := 1.0, float64(mostSweep)
	var err error
	switch len(parts) {
	case 2:
		for value := range strings.SplitSeq(parts[1], ",") {
			v, err := s.value(value)
			if n := len(s.Values); err != nil || n > 0 && v <= s.Values[n-1] {
				return wrong()
			}
			s.Values = append(s.Values, v)
		}
		return s, nil
	case 3:
		if from, err = s.value(parts[1]); err == nil {
			to, err = s.value(parts[2])
		}
		if err != nil || to < from {
			return wrong()
		}
	}
	for v := from; v < to; v *= 2 {
		s.Values = append(s.Values, v)
	}
	s.Values = append(s.Values, to)
	return s, nil
}

func (s *Sweep) value(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (!(v >= minRate && v <= maxRate) || s.By == ByConcurrency && v != math.Trunc(v)) {
		err = strconv.ErrRange
	}
	return v, err
}

// UnmarshalText reads what [ParseSweep] does.
func (s *Sweep) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSweep(string(text))
	return err
}

// The least requests of a step, and what there are of them: for each at one time, and
// for a rate in so many seconds.
const (
	sweepRequests = 16
	sweepEach     = 4
	sweepSeconds  = 20
)

// Step are o's options for step i of s: its load, its own prompts, so that none is in the
// server's cache from the step before, and, where o has neither requests nor a duration, as
// many requests as show what the load comes to.
func (s *Sweep) Step(o Options, i int) Options {
	v := s.Values[i]
	each := sweepEach * v
	if s.By == ByConcurrency {
		o.Concurrency = int(v)
	} else {
		o.Rate, each = v, sweepSeconds*v
	}
	if o.Requests == 0 && o.Duration == 0 {
		o.Requests = max(sweepRequests, int(each))
	}
	o.Seed += uint64(i)
	return o
}

// Saturation says why the last of the steps shows that more load brings no more; empty
// where it does not. More than a tenth of its requests failed; or it was given so many
// times the load of the step with the most answer tokens a second, and gave less than a
// twentieth of that more; or requests came faster than they were answered.
func (s *Sweep) Saturation(steps []*Result) string {
	last := steps[len(steps)-1]
	if last.Failed*10 > last.Failed+last.Completed {
		return "more than a tenth of the requests failed"
	}
	if len(steps) == 1 {
		return ""
	}
	most, at := 0.0, 0
	for i, r := range steps[:len(steps)-1] {
		if r.AnswerRate > most {
			most, at = r.AnswerRate, i
		}
	}
	factor := s.Values[len(steps)-1] / s.Values[at]
	switch {
	case last.AnswerRate < most*(1+(factor-1)/20):
		return fmt.Sprintf("%.1f times the load brings no more", factor)
	case s.By == ByRate && last.Seconds > 1.5*last.Due+steps[0].EndToEnd.P99/1000:
		return "requests come faster than they are answered"
	}
	return ""
}
