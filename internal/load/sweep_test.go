package load

import (
	"slices"
	"testing"
	"time"
)

func TestParseSweep(t *testing.T) {
	for text, want := range map[string]Sweep{
		"concurrency:1:8":   {ByConcurrency, []float64{1, 2, 4, 8}},
		"concurrency:3:20":  {ByConcurrency, []float64{3, 6, 12, 20}},
		"concurrency:5:5":   {ByConcurrency, []float64{5}},
		"rate:0.5:2":        {ByRate, []float64{0.5, 1, 2}},
		"rate:1,1.5,3":      {ByRate, []float64{1, 1.5, 3}},
		"concurrency:16,64": {ByConcurrency, []float64{16, 64}},
	} {
		if got, err := ParseSweep(text); err != nil || got.By != want.By || !slices.Equal(got.Values, want.Values) {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	if s, err := ParseSweep("rate"); err != nil || s.Values[0] != 1 || s.Values[1] != 2 || s.Values[len(s.Values)-1] != mostSweep {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"", "load", "rate:", "rate:2:1", "rate:0", "rate:-1:5", "rate:NaN", "rate:1,1", "rate:2,1", "concurrency:1.5", "rate:1:2:3", "rate:1:Inf"} {
		if got, err := ParseSweep(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestSweepStep(t *testing.T) {
	of := func(text string) Sweep {
		s, err := ParseSweep(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	by, rates := of("concurrency:1,2,64"), of("rate:0.5,40")
	a, b, c := by.Step(Options{Seed: 7}, 0), by.Step(Options{Seed: 7}, 2), rates.Step(Options{Concurrency: 3}, 1)
	if a.Concurrency != 1 || a.Requests != 16 || b.Concurrency != 64 || b.Requests != 256 || a.Seed == b.Seed || c.Rate != 40 || c.Requests != 800 || c.Concurrency != 3 {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
	if d := by.Step(Options{Duration: time.Second}, 2); d.Requests != 0 {
		t.Errorf("%+v", d)
	}
}

func TestSaturation(t *testing.T) {
	type steps []*Result
	r := func(tok float64) *Result { return &Result{Completed: 10, AnswerRate: tok} }
	slow := &Result{Completed: 10, AnswerRate: 180, Seconds: 40, Due: 20}
	slow.EndToEnd.P99 = 1000
	for name, test := range map[string]struct {
		sweep string
		steps steps
		want  string
	}{
		"one":                {"rate:1,2,4", steps{r(100)}, ""},
		"grows":              {"concurrency:1,2,4", steps{r(100), r(190), r(220)}, ""},
		"no more":            {"concurrency:1,2,4", steps{r(100), r(190), r(199)}, "2.0 times the load gave no more throughput"},
		"less":               {"concurrency:1,2,4", steps{r(100), r(190), r(20)}, "2.0 times the load gave no more throughput"},
		"a small step":       {"concurrency:10,11", steps{r(100), r(101)}, ""},
		"fails":              {"rate:1,2", steps{{Completed: 8, Failed: 2}}, "more than a tenth of the requests failed"},
		"a tenth fails":      {"rate:1,2", steps{{Completed: 9, Failed: 1}}, ""},
		"falls behind":       {"rate:1,2", steps{r(100), slow}, "requests arrived faster than they were answered"},
		"slow, but no rate":  {"concurrency:1,2", steps{r(100), slow}, ""},
		"after the best one": {"concurrency:1,2,4", steps{r(100), r(90), r(112)}, "4.0 times the load gave no more throughput"},
	} {
		s, err := ParseSweep(test.sweep)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Saturation(test.steps); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
