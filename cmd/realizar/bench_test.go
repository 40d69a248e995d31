package main_test

import (
	"encoding/json"
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
	fails(t, realizarRun(t, "bench", model), 2, "-p", "512", "256")
	fails(t, realizarRun(t, "bench", model, "-p", "8", "-n", "256"), 2, "-n", "257", "256")
}
