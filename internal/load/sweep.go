package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Sweep is a series of measurements with increasing load, until more load brings no more
// throughput.
type Sweep struct {
	By     SweepBy
	Values []float64 // ascending: running requests, or requests a second
}

// SweepBy is the quantity that a sweep raises.
type SweepBy string

// The quantities.
const (
	ByConcurrency SweepBy = "concurrency"
	ByRate        SweepBy = "rate"
)

const sweepWanted = "want concurrency or rate, from 1 on, or with :FROM:TO, which doubles, or with the values, such as rate:1,2,3"

// mostSweep is where a sweep ends if it has no other end.
const mostSweep = 1 << 14

// ParseSweep parses concurrency or rate, alone, or followed by :FROM:TO for a value that doubles,
// or by : and values separated by commas.
func ParseSweep(text string) (Sweep, error) {
	wrong := func() (Sweep, error) { return Sweep{}, fmt.Errorf("%.60q is not a sweep: %s", text, sweepWanted) }
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

// UnmarshalText parses text as [ParseSweep] does.
func (s *Sweep) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSweep(string(text))
	return err
}

// The fewest requests of a step, the requests for each running one, and the seconds of a rate.
const (
	sweepRequests = 16
	sweepEach     = 4
	sweepSeconds  = 20
)

// Step returns o's options for step i of s: its load; its own prompts, so that none is cached from
// the step before; and, if o has neither requests nor a duration, as many requests as show the
// throughput at that load.
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

// Saturation says why the last step shows that more load brings no more; it is empty if the step
// does not. Either more than a tenth of its requests failed; or it had a multiple of the load of
// the step with the most answer tokens a second, and its rate was less than a twentieth higher; or
// requests came faster than they were answered.
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
		return fmt.Sprintf("%.1f times the load gave no more throughput", factor)
	case s.By == ByRate && last.Seconds > 1.5*last.Due+steps[0].EndToEnd.P99/1000:
		return "requests arrived faster than they were answered"
	}
	return ""
}
