package load

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestParseSLO(t *testing.T) {
	for text, want := range map[string]SLO{
		"ttft=500ms,itl=50ms":     {FirstToken: 500 * time.Millisecond, InterToken: 50 * time.Millisecond},
		"e2e=10s":                 {EndToEnd: 10 * time.Second},
		" tpot = 20ms , ttft=1s ": {PerToken: 20 * time.Millisecond, FirstToken: time.Second},
	} {
		got, err := ParseSLO(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseSLO(got.String()); err != nil || again != want {
			t.Errorf("%q written as %q is %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "ttft", "ttft=", "ttft=5", "ttft=-1s", "ttft=0s", "ttf=1s", "ttft=1s,ttft=2s", "ttft=1s,"} {
		if got, err := ParseSLO(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// Answers of 101 parts, 10 ms apart, begin after 30 ms and end after 1,030 ms.
func TestGoodput(t *testing.T) {
	for text, want := range map[string]int{
		"ttft=30ms": 6, "ttft=29ms": 0, "itl=10ms": 6, "itl=9ms": 0, "e2e=1030ms": 6, "e2e=1029ms": 0,
		"tpot=5ms": 6, "tpot=4ms": 0, // 201 tokens
		"ttft=30ms,itl=9ms": 0, "ttft=30ms,itl=10ms": 6,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stub{first: 30 * time.Millisecond, gap: 10 * time.Millisecond, pieces: 101, tokens: 201}
			o := usual()
			o.SLO, _ = ParseSLO(text)
			r, err := run(t, t.Context(), s, o)
			if err != nil {
				t.Fatal(err)
			}
			if g := r.Goodput; g == nil || g.Met != want || g.Share != float64(want)/6 || g.RequestRate != float64(want)/r.Seconds || g.AnswerRate != float64(want*201)/r.Seconds {
				t.Errorf("%s: %+v, want %d", text, r.Goodput, want)
			}
		})
	}
}

// One gap of a hundred may be longer, two may not. Failed requests do not meet an objective.
func TestGoodputSlowGaps(t *testing.T) {
	for _, test := range []struct{ gaps, slow, met int }{{99, 0, 1}, {99, 1, 0}, {100, 1, 1}, {199, 2, 0}, {200, 2, 1}} {
		begun := time.Now()
		a := answer{due: begun, arrivals: []time.Time{begun}}
		for i := range test.gaps {
			gap := 10 * time.Millisecond
			if i < test.slow {
				gap = time.Second
			}
			a.arrivals = append(a.arrivals, a.arrivals[i].Add(gap))
		}
		a.ended = a.arrivals[test.gaps]
		if got := (SLO{InterToken: 10 * time.Millisecond}).met(&a, test.gaps+1); got != (test.met == 1) {
			t.Errorf("%+v: %v", test, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := &stub{pieces: 2, tokens: 2, status: func(n int) int { return map[bool]int{true: 429, false: 200}[n%2 == 0] }}
		o := usual()
		o.SLO.EndToEnd = time.Second
		r, err := run(t, t.Context(), s, o)
		if err != nil || r.Goodput.Met != 3 || r.Goodput.Share != 0.5 {
			t.Errorf("%+v, %v", r.Goodput, err)
		}
	})
}
