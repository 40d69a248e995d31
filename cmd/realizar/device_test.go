package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/backends/backendstest"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
)

// An abacus is a device that computes as the processor does, but adds off to every logit but the
// first.
type abacus struct {
	*cpu.Backend
	off    float32
	closed int
	spent  func(*plan.Batch) (plan.Times, []plan.Span) // the times of a step; nil means the processor's
}

func (a *abacus) Name() string                               { return "abacus" }
func (a *abacus) Description() string                        { return "Large Abacus" }
func (a *abacus) Memory() plan.MemoryInfo                    { return plan.MemoryInfo{Free: 1 << 40, Total: 2 << 40} }
func (a *abacus) Bandwidth(context.Context) (float64, error) { return 2e9, nil }
func (a *abacus) Link(context.Context) (float64, error)      { return 1e9, nil }
func (a *abacus) Weights(p *plan.Program, l plan.Limits) int {
	s := a.Streaming(p, l)
	return s.Device()
}

func (a *abacus) Streaming(p *plan.Program, l plan.Limits) plan.Streaming {
	return backendstest.Stream(p, l)
}
func (a *abacus) Close() error { a.closed++; return nil }

func (a *abacus) Kernels(p *plan.Program, _ plan.Limits) []string {
	return slices.Repeat([]string{"a row of beads"}, len(p.Nodes))
}

func (a *abacus) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := a.Backend.Compile(ctx, p, l, loaded)
	return &beads{exe, a}, err
}

type beads struct {
	plan.Executable
	a *abacus
}

func (e *beads) Submit(b *plan.Batch) (plan.Step, error) {
	s, err := e.Executable.Submit(b)
	return &bead{s, e.a, b}, err
}

type bead struct {
	plan.Step
	a     *abacus
	batch *plan.Batch
}

func (s *bead) Wait(ctx context.Context) (*plan.Result, error) {
	r, err := s.Step.Wait(ctx)
	if err == nil && s.a.off != 0 {
		for _, row := range r.Logits {
			for i := 1; i < len(row); i++ {
				row[i] += s.a.off
			}
		}
	}
	if err == nil && s.a.spent != nil {
		r.Times, r.Spans = s.a.spent(s.batch)
	}
	return r, err
}

// testApp returns an app for running a command in the test's process, with its standard output and
// error.
func testApp(t *testing.T) (a *app, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{ctx: t.Context(), stdin: &bytes.Buffer{}, stdout: os.Stdout, stderr: os.Stderr, out: out, err: err}, out, err
}

// withAbacus makes an abacus the preferred device of the process.
func withAbacus(t *testing.T) *abacus {
	a, all := &abacus{Backend: cpu.New(1)}, backends.All
	t.Cleanup(func() { backends.All = all })
	backends.All = backends.List{{Name: "abacus", Parallel: 64, Open: func(backends.Options) (backends.Backend, error) { return a, nil }}, backends.Processor}
	return a
}

// A crowded abacus, or several together, has little memory.
type crowded struct {
	abacus
	parts, free int64
}

func (c *crowded) Description() string { return fmt.Sprintf("%d x Abacus", c.parts) }
func (c *crowded) Memory() plan.MemoryInfo {
	return plan.MemoryInfo{Free: c.parts * c.free, Total: c.parts * c.free}
}
func (c *crowded) Bandwidth(context.Context) (float64, error) { return float64(c.parts), nil }

// TestBenchOnSeveralDevices checks that batches run on the fewest devices that hold the model, and
// that speeds are compared with those of the devices that ran the model.
func TestBenchOnSeveralDevices(t *testing.T) {
	all := backends.All
	t.Cleanup(func() { backends.All = all })
	free := int64(1 << 40)
	backends.All = backends.List{{Name: "abacus", Parallel: 64, Several: 8, Count: func() int { return 4 }, Open: func(o backends.Options) (backends.Backend, error) {
		return &crowded{abacus{Backend: cpu.New(1)}, 1 + int64(len(o.Others)), free}, nil
	}}, backends.Processor}
	for _, test := range []struct {
		device, description string
		reads               float64
	}{{"auto", "1 x Abacus", 1}, {"auto", "2 x Abacus", 2}, {"abacus", "4 x Abacus", 4}, {"abacus:0,1,2", "3 x Abacus", 3}} {
		reads, _, err := memoryRates(t.Context(), &modelFlags{Device: test.device}, "abacus", test.description, false)
		if err != nil || reads != test.reads {
			t.Errorf("%s on %s: %v, %v", test.device, test.description, reads, err)
		}
	}
	model := modeltest.Llama(t, modeltest.Context(4096))
	m, err := openLockstep(model, "", realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, takes, err := m.memory.Least()
	if err := errors.Join(err, m.close()); err != nil {
		t.Fatal(err)
	}
	short := int64(takes.Weights+takes.States+takes.Scratch) * 3 / 4
	for _, test := range []struct {
		what   string
		free   int64
		device string
		stream realizar.StreamWeights
		want   string
	}{
		{"one has room", 1 << 40, "auto", realizar.StreamAuto, "abacus:0"},
		{"several have", short, "auto", realizar.StreamAuto, "abacus:0,1"},
		{"none have", 1 << 10, "abacus", realizar.StreamAuto, "abacus:0"},
		{"weights are to stream", short, "auto", realizar.StreamAlways, "abacus:0"},
	} {
		free = test.free
		m, err := openLockstep(model, "", realizar.Options{Device: test.device, StreamWeights: test.stream})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.device.Selector(); got != test.want {
			t.Errorf("%s: on %s, want %s", test.what, got, test.want)
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBenchOnDevice checks that speeds are shares of the limits of the device that ran the model.
func TestBenchOnDevice(t *testing.T) {
	withAbacus(t)
	model := modeltest.Llama(t)
	for _, test := range []struct {
		device string
		batch  []int
	}{{"abacus", nil}, {"abacus", []int{1, 3}}, {"auto", []int{2}}} {
		a, out, notes := testApp(t)
		eight := 8
		c := &benchCommand{Model: model, Prompt: &eight, Tokens: &eight, Batch: test.batch, Runs: 1, JSON: true, modelFlags: modelFlags{Activations: "auto", Device: test.device}}
		if err := c.Run(a); err != nil {
			t.Fatal(err)
		}
		if notes.Len() > 0 {
			t.Errorf("notes %q", notes)
		}
		results := 0
		for line := range bytes.Lines(out.Bytes()) {
			var r measurement
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			results++
			if r.Device != "abacus" || r.DeviceName == nil || *r.DeviceName != "Large Abacus" || r.Threads != 0 {
				t.Errorf("%s", line)
			}
			if r.Test == "pp8" {
				if r.ShareOfLimit != nil || r.PeakFloats != nil {
					t.Errorf("the prompt's share of the processor's limit: %s", line)
				}
			} else if r.Bandwidth == nil || *r.Bandwidth != 2e9 || !nearly(*r.ShareOfLimit, r.Rate/float64(r.Batch)*float64(*r.StepBytes)/2e9) {
				t.Errorf("%s", line)
			}
		}
		if want := 1 + max(1, len(test.batch)); results != want {
			t.Errorf("%d results, want %d: %s", results, want, out)
		}
	}
	a, out, _ := testApp(t)
	none, four := 0, 4
	c := &benchCommand{Model: model, Prompt: &none, Tokens: &four, Runs: 1, modelFlags: modelFlags{Activations: "auto", Device: "auto"}}
	if err := c.Run(a); err != nil {
		t.Fatal(err)
	}
	mentions(t, out.String(), "device: abacus (Large Abacus), runs: 1, reads 2.0 GB/s")
}

// TestBenchFindsNothing checks that no run finds tokens of another run in the cache.
func TestBenchFindsNothing(t *testing.T) {
	a, _, _ := testApp(t)
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := &benchmark{benchCommand: &benchCommand{Runs: 3}, app: a}
	for _, n := range []int{1, 1, 9} {
		if _, _, err := b.repeat(m, randomTokens(0, 100, m.Vocab()), n, (*realizar.Finish).PrefillRate); err != nil {
			t.Fatal(err)
		}
	}
	if s := m.Metrics(); s.CacheHits > 0 || s.CacheQueries == 0 {
		t.Errorf("of %d tokens %d were found in the cache", s.CacheQueries, s.CacheHits)
	}
}

// mentions checks that a text contains parts.
func mentions(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s\ndoes not say %q", text, p)
		}
	}
}

func nearly(a, b float64) bool { return a > 0.999*b && a < 1.001*b }

// TestInspectOnDevice checks that the plan shows the device's kernels and memory.
func TestInspectOnDevice(t *testing.T) {
	a := withAbacus(t)
	model := modeltest.Llama(t)
	run := func(c inspectCommand) string {
		t.Helper()
		app, out, notes := testApp(t)
		c.Model, c.Parallel, c.Activations, c.Plan = model, 1, "auto", true
		if err := c.Run(app); err != nil || notes.Len() > 0 {
			t.Fatal(err, notes)
		}
		return out.String()
	}
	mentions(t, run(inspectCommand{Device: "auto"}), "1.0 TiB are free on Large Abacus (abacus)\n", "in the device's memory\n", "\nKernels\n\na row of beads\na row of beads\n")
	var d struct {
		Kernels []string
		Memory  struct {
			Device string
			Name   string `json:"device_name"`
		}
	}
	if err := json.Unmarshal([]byte(run(inspectCommand{Device: "abacus", JSON: true})), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Kernels) < 10 || d.Memory.Device != "abacus" || d.Memory.Name != "Large Abacus" {
		t.Errorf("%+v", d)
	}
	if text := run(inspectCommand{Device: "cpu"}); strings.Contains(text, "beads") {
		t.Errorf("the processor has beads: %s", text)
	}
	if a.closed != 4 {
		t.Errorf("%d devices were closed, want 4", a.closed)
	}
}
