package load

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An SLO is an objective for an answer. A time of 0 is no objective.
type SLO struct {
	FirstToken time.Duration // until the first chunk
	InterToken time.Duration // the 99th percentile of the gaps between its chunks
	PerToken   time.Duration // the mean over the tokens after the first chunk
	EndToEnd   time.Duration // until the end of the answer
}

// Goodput counts the answers within an [SLO].
type Goodput struct {
	SLO         SLO     `json:"slo"`
	Met         int     `json:"met"`   // answers
	Share       float64 `json:"share"` // of the requests that were answered or failed
	RequestRate float64 `json:"requests_s"`
	AnswerRate  float64 `json:"answer_tok_s"`
}

const sloWanted = "want times such as ttft=500ms,itl=50ms; there are ttft, itl, tpot and e2e"

// times returns the times of s with their names.
func (s *SLO) times() []objective {
	return []objective{{"ttft", &s.FirstToken}, {"itl", &s.InterToken}, {"tpot", &s.PerToken}, {"e2e", &s.EndToEnd}}
}

type objective struct {
	name string
	most *time.Duration
}

// ParseSLO parses objectives separated by commas: ttft, the time to the first token; itl, between
// tokens; tpot, per token; e2e, end to end.
func ParseSLO(text string) (SLO, error) {
	var s SLO
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		times := s.times()
		i := slices.IndexFunc(times, func(o objective) bool { return o.name == strings.TrimSpace(name) })
		d, err := time.ParseDuration(strings.TrimSpace(value))
		if i < 0 || err != nil || d <= 0 {
			return SLO{}, fmt.Errorf("%.60q is no objective: %s", part, sloWanted)
		}
		if *times[i].most != 0 {
			return SLO{}, fmt.Errorf("%s is there twice: %s", times[i].name, sloWanted)
		}
		*times[i].most = d
	}
	return s, nil
}

// UnmarshalText parses text as [ParseSLO] does.
func (s *SLO) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSLO(string(text))
	return err
}

// String returns s in the form that [ParseSLO] parses.
func (s SLO) String() string {
	var parts []string
	for _, o := range s.times() {
		if *o.most > 0 {
			parts = append(parts, o.name+"="+o.most.String())
		}
	}
	return strings.Join(parts, ",")
}

// MarshalText returns s in the form that [ParseSLO] parses.
func (s SLO) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// met reports whether an answer of that many tokens meets s.
func (s SLO) met(a *answer, tokens int) bool {
	within := func(d, most time.Duration) bool { return most == 0 || d <= most }
	if !within(a.ended.Sub(a.due), s.EndToEnd) {
		return false
	}
	if len(a.arrivals) == 0 {
		return true
	}
	first, last := a.arrivals[0], a.arrivals[len(a.arrivals)-1]
	if !within(first.Sub(a.due), s.FirstToken) || !within(last.Sub(first)/time.Duration(max(1, tokens-1)), s.PerToken) {
		return false
	}
	slow := 0
	for i, t := range a.arrivals[1:] {
		if !within(t.Sub(a.arrivals[i]), s.InterToken) {
			slow++
		}
	}
	return slow <= (len(a.arrivals)-1)/100
}
