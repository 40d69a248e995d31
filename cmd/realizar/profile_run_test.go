package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
)

// TestRunProfile checks that steps on the processor have times and parts, which cover the model's
// weights.
func TestRunProfile(t *testing.T) {
	model, path := modeltest.Llama(t, modeltest.EndTokens()), filepath.Join(t.TempDir(), "steps.json")
	args := []string{"run", model, "hello world", "--raw", "--max-tokens", "6"}
	r := realizarRun(t, append(args, "--trace-timing", "--profile", path)...)
	if want := output(t, "", args...); r.code != 0 || r.stdout != want {
		t.Fatalf("exit code %d, %q, want %q; %s", r.code, r.stdout, want, r.stderr)
	}
	for _, part := range []string{"first token ", "\nprefill ", "\nsteps of one token for each answer: 5, of 5 tokens\non cpu ", "\nall ", "\n none ", "\n    1 ", "\nof memory: "} {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("%s\ndoes not say %q", r.stderr, part)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Events []struct {
			Cat      string
			Duration float64 `json:"dur"`
			Args     struct{ Where string }
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &trace); err != nil {
		t.Fatal(err)
	}
	var steps, took, parts float64
	var where strings.Builder
	for _, e := range trace.Events {
		switch e.Cat {
		case "step":
			steps++
			took += e.Duration
		case "kernel":
			parts += e.Duration
			where.WriteString(e.Args.Where + "\n")
		}
	}
	if steps != 6 || parts <= 0 || parts > 1.001*took {
		t.Errorf("%v steps took %v us, their parts %v us", steps, took, parts)
	}
	for _, name := range []string{"token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output_norm.weight"} {
		if !strings.Contains(where.String(), name) {
			t.Errorf("no part of a step is of %s", name)
		}
	}
}
