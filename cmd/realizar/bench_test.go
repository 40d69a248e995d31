package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
)

func TestBenchJSON(t *testing.T) {
	model := modeltest.Llama(t)
	out := output(t, "", "bench", model, "-p", "16", "-n", "8", "-r", "2", "--json")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("wrote %q, want two lines", out)
	}
	for i, name := range []string{"pp16", "tg8"} {
		var r struct {
			Test   string   `json:"test"`
			Rate   float64  `json:"tok_s"`
			Min    float64  `json:"min"`
			Max    float64  `json:"max"`
			Share  *float64 `json:"share_of_limit"`
			Device string   `json:"device"`
			Batch  int      `json:"batch"`
			Model  string   `json:"model"`
		}
		if err := json.Unmarshal([]byte(lines[i]), &r); err != nil {
			t.Fatal(err)
		}
		if r.Test != name || !(0 < r.Min && r.Min <= r.Rate && r.Rate <= r.Max) || r.Device != "cpu" || r.Batch != 1 || r.Model != model {
			t.Errorf("%s: %+v", name, r)
		}
		if i == 0 && r.Share != nil || i == 1 && !(r.Share != nil && *r.Share > 0) {
			t.Errorf("%s: share of limit %v", name, r.Share)
		}
	}
}

func TestBench(t *testing.T) {
	model := modeltest.Llama(t)
	out := output(t, "", "bench", model, "-p", "0", "-n", "4", "-r", "1")
	if strings.Contains(out, "pp") || !strings.Contains(out, "tg4 ") || !strings.Contains(out, "tok/s") {
		t.Errorf("wrote %q, want tg4 alone", out)
	}
	out = output(t, "", "bench", model, "-p", "256", "-n", "0", "-r", "1", "--threads", "1")
	if !strings.Contains(out, "pp256") || strings.Contains(out, "tg") || !strings.Contains(out, "threads: 1,") {
		t.Errorf("wrote %q, want pp256 alone", out)
	}
	output(t, "", "bench", model, "-p", "0", "-n", "255", "-r", "1")
}

// The usual lengths are shortened to the context, and the tests named by what
// was measured.
func TestBenchSmallContext(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		args  []string
		tests []string
		notes []string
	}{
		{nil, []string{"pp256", "tg128"}, []string{"measuring pp256 in place of pp512: the context is 256"}},
		{[]string{"-p", "8"}, []string{"pp8", "tg128"}, nil},
		{[]string{"-n", "0"}, []string{"pp256"}, []string{"measuring pp256 in place of pp512: the context is 256"}},
		{[]string{"--context", "64"}, []string{"pp64", "tg63"}, []string{
			"measuring pp64 in place of pp512: the context is 64", "measuring tg63 in place of tg128: the context is 64"}},
		{[]string{"--context", "1"}, []string{"pp1"}, []string{
			"measuring pp1 in place of pp512: the context is 1", "leaving tg128 out: the context is 1"}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			r := realizarRun(t, append([]string{"bench", model, "-r", "1", "--json"}, test.args...)...)
			var tests []string
			for line := range strings.Lines(r.stdout) {
				var m struct {
					Test string  `json:"test"`
					Rate float64 `json:"tok_s"`
				}
				if err := json.Unmarshal([]byte(line), &m); err != nil || m.Rate <= 0 {
					t.Errorf("%s: %v", line, err)
				}
				tests = append(tests, m.Test)
			}
			var notes string
			for _, n := range test.notes {
				notes += "realizar: " + n + "\n"
			}
			if r.code != 0 || !slices.Equal(tests, test.tests) || r.stderr != notes {
				t.Errorf("measured %v with exit code %d and notes %q, want %v with %q", tests, r.code, r.stderr, test.tests, notes)
			}
		})
	}
}

// A length asked for that does not fit is an error, which tells only of ways out
// that there are.
func TestBenchTooLong(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		args  []string
		says  []string
		raise bool
	}{
		{[]string{"-p", "257"}, []string{"-p 257 ", "257 tokens", "is 256;", "256 at most"}, false},
		{[]string{"-n", "256"}, []string{"-n 256 ", "257 tokens", "is 256;", "255 at most"}, false},
		{[]string{"-n", "9223372036854775807"}, []string{"-n 9223372036854775807 ", "9223372036854775808 tokens", "255 at most"}, false},
		{[]string{"-p", "100", "--context", "64"}, []string{"is 64;", "64 at most", "--context to 100"}, true},
		{[]string{"-n", "255", "--context", "64"}, []string{"is 64;", "63 at most", "--context to 256"}, true},
		{[]string{"-p", "257", "--context", "64"}, []string{"is 64;", "64 at most"}, false},
		{[]string{"-p", "0", "--context", "1"}, []string{"nothing to measure"}, false},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			r := realizarRun(t, append([]string{"bench", model}, test.args...)...)
			fails(t, r, 2, test.says...)
			if strings.Contains(r.stderr, "raise") != test.raise {
				t.Errorf("%q: whether to raise the context should be %v", r.stderr, test.raise)
			}
		})
	}
}
