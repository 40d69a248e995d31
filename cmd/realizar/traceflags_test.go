package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
)

// spentBeads returns two kernels for each step, and the times of the step.
func spentBeads(b *plan.Batch) (t plan.Times, spans []plan.Span) {
	if b.Timed {
		t = plan.Times{Embed: 1000, Choose: 2000, Total: 8000}
	}
	if b.Spans {
		spans = []plan.Span{{Kernel: "row of beads", Where: "the embedding", Layer: plan.NoLayer, Time: 2000, Bytes: 10}, {Kernel: "all beads", Where: "layer 0", Begin: 2000, Time: 6000, Bytes: 12_000}}
	}
	return t, spans
}

// traced runs a model on an abacus with the flags, for up to 6 tokens.
func traced(t *testing.T, f traceFlags, more func(*runCommand, *app)) (out, text string, err error) {
	t.Helper()
	withAbacus(t).spent = spentBeads
	a, written, notes := testApp(t)
	n, zero, prompt := 6, float32(0), "hello world"
	c := &runCommand{Model: modeltest.Llama(t, modeltest.EndTokens()), Prompt: &prompt, N: 1, Raw: true, traceFlags: f, modelFlags: modelFlags{Activations: "auto", Device: "abacus"}}
	c.MaxTokens, c.Temperature = &n, &zero
	if more != nil {
		more(c, a)
	}
	err = c.Run(a)
	return written.String(), notes.String(), err
}

// TestTraced checks that the flags do not change the answer, and report its steps.
func TestTraced(t *testing.T) {
	plain, notes, err := traced(t, traceFlags{}, nil)
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	path := filepath.Join(t.TempDir(), "steps.json")
	out, notes, err := traced(t, traceFlags{TraceTiming: true, Profile: &path}, nil)
	if err != nil || out != plain {
		t.Fatalf("%v: %q, want %q", err, out, plain)
	}
	mentions(t, notes, "first token", "\nprefill", "tokens: 2, steps: 1", "\n     6     0.001      0.008      0.002", "of the 5 tokens after the first",
		"steps of one token for each answer: 5, of 5 tokens\non abacus 0.040 ms", "add up to 0.040 ms, 100.0% of the former", "steps of prompts: 1, of 2 tokens",
		"all beads         5     0.030     6.00   75.0%    11.7 KiB   2.0     100.0%", "of memory: 2.0 GB/s, as Large Abacus reads it")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, kernels := checkTrace(t, data); len(kernels) != 6 || len(kernels[5]) != 2 || parsed.OtherData.Device != "abacus" || parsed.OtherData.LeftOut != 0 {
		t.Errorf("%+v, %d steps", parsed.OtherData, len(kernels))
	}

	out, notes, err = traced(t, traceFlags{TraceTiming: true}, func(c *runCommand, _ *app) { c.JSON = true })
	var object struct {
		Tokens []int32
		Trace  timingTrace
	}
	if err := errors.Join(err, json.Unmarshal([]byte(out), &object)); err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	if len(object.Trace.Tokens) != 6 || len(object.Tokens) != 6 || object.Trace.Tokens[3].Device != 0.008 || object.Trace.FirstToken["total_ms"] <= 0 {
		t.Errorf("%+v", object)
	}
	if out, _, err := traced(t, traceFlags{}, func(c *runCommand, _ *app) { c.JSON = true }); err != nil || strings.Contains(out, `"trace"`) {
		t.Errorf("%v: a trace that nobody asked for: %s", err, out)
	}
}

// TestTracedNothing checks that an answer of no tokens is reported as such, with a trace file
// without steps.
func TestTracedNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps.json")
	_, notes, err := traced(t, traceFlags{TraceTiming: true, Profile: &path}, func(c *runCommand, _ *app) { *c.MaxTokens = 0 })
	if err != nil {
		t.Fatal(err)
	}
	mentions(t, notes, "\nload ", "\ntotal ", "no step was made")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkTrace(t, data)
}

// TestTracedInterrupted checks that an interrupted answer is reported as far as it came. If there
// was no step, no file is written and an old one is kept.
func TestTracedInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "steps.json")
	if err := os.WriteFile(path, []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, notes, err := traced(t, traceFlags{Profile: &path, TraceTiming: true}, func(c *runCommand, a *app) { c.Model = filepath.Join(t.TempDir(), "absent") })
	if data, _ := os.ReadFile(path); err == nil || notes != "" || string(data) != "before" {
		t.Errorf("without a model: %v, %q, the file is %q", err, notes, data)
	}
	out := &bytes.Buffer{}
	_, notes, err = traced(t, traceFlags{Profile: &path, TraceTiming: true}, func(c *runCommand, a *app) {
		*c.MaxTokens = 200
		ctx, stop := context.WithCancel(a.ctx)
		a.ctx = ctx
		a.out = writerFunc(func(p []byte) (int, error) { stop(); return out.Write(p) })
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mentions(t, notes, "first token", "steps of prompts: 1")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, kernels := checkTrace(t, data); len(kernels) == 0 {
		t.Error("the file has no step")
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestTraceFlagsRefused checks that what cannot be traced is refused before the model is opened.
func TestTraceFlagsRefused(t *testing.T) {
	folder := t.TempDir()
	for _, test := range []struct {
		flags traceFlags
		n     int
		says  string
	}{
		{traceFlags{TraceTiming: true}, 2, "--trace-timing supports one answer, and --n asks for 2"},
		{traceFlags{Profile: &folder}, 1, "--profile: " + folder + " is a folder"},
	} {
		_, _, err := traced(t, test.flags, func(c *runCommand, _ *app) { c.N, c.Model = test.n, "absent" })
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v, want %q", test.flags, err, test.says)
		}
	}
	for _, f := range []traceFlags{{TraceTiming: true}, {Profile: &folder}} {
		if err := f.allow(1, true); err == nil || !strings.Contains(err.Error(), "is not supported in a chat") {
			t.Errorf("in a chat: %v", err)
		}
	}
	empty := ""
	if err := (&traceFlags{Profile: &empty}).Validate(); err == nil {
		t.Error("a file without a name is taken")
	}
}
