package realizar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/synth/synthtest"
)

// A frame is several abaci that run a model together.
type frame struct {
	*mesh.Backend
	first *abacus
	parts int
	split mesh.Split
	fails error // of Compile
}

func (f *frame) Name() string { return f.first.Name() }
func (f *frame) Description() string {
	name := fmt.Sprintf("%d x %s", f.parts, f.first.Description())
	if f.split == mesh.ByLayer {
		name += " by layer"
	}
	return name
}
func (f *frame) Close() error { return f.first.Close() }
func (f *frame) Memory() plan.MemoryInfo {
	n := int64(f.parts) * f.first.free
	return plan.MemoryInfo{Free: n, Total: n}
}
func (f *frame) Kernels(p *plan.Program, l plan.Limits) []string { return f.first.Kernels(p, l) }
func (f *frame) Bandwidth(ctx context.Context) (float64, error)  { return f.first.Bandwidth(ctx) }
func (f *frame) Link(ctx context.Context) (float64, error)       { return f.first.Link(ctx) }
func (f *frame) Streaming(p *plan.Program, l plan.Limits) plan.Streaming {
	return plan.Streaming{Resident: f.Weights(p, l)}
}

func (f *frame) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	if f.fails != nil {
		return nil, f.fails
	}
	return f.Backend.Compile(ctx, p, l, loaded)
}

// frames makes n abaci the devices of the process. They are opened and closed as often as a says.
func frames(t *testing.T, a *abacus, n int, fails error) {
	all := backends.All
	t.Cleanup(func() { backends.All = all })
	open := func(o backends.Options) (backends.Backend, error) {
		if a.opened++; len(o.Others) == 0 {
			return a, nil
		}
		parts := 1 + len(o.Others)
		return &frame{mesh.New(a, parts, o.Split), a, parts, o.Split, fails}, nil
	}
	backends.All = backends.List{{Name: "abacus", Parallel: 64, Several: 8, Count: func() int { return n }, Open: open}, backends.Processor}
}

// A model is on the fewest devices that hold it, or else on the first one, to which weights stream.
func TestFewestDevices(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	_, need := s.takes(1024, 0)
	answer := func(o Options) (m *Model, ids []int32, err error) {
		t.Helper()
		o.Context, o.Parallel = 1024, 1
		if m, err = Open(t.Context(), s.path, o); err != nil {
			return nil, nil, err
		}
		t.Cleanup(func() { _ = m.Close() })
		ids, _, err = answered(t.Context(), m, []int32{1, 2, 3}, 1)
		return m, ids, err
	}
	_, want, err := answer(Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	const one, two, four = "Large Abacus", "2 x Large Abacus", "4 x Large Abacus"
	for _, test := range []struct {
		what    string
		room    float64 // of a device, as a part of what the model needs
		devices int
		options Options
		fails   error  // of several devices
		name    string // of the devices; "": an error, or the processor
		opened  int
		streams bool
		err     error
	}{
		{what: "one has room", room: 1.1, devices: 8, name: one, opened: 1},
		{what: "two have", room: 0.9, devices: 8, name: two, opened: 2},
		{what: "two have, some of the layers each", room: 0.9, devices: 8, options: Options{Split: SplitLayers}, name: two + " by layer", opened: 2},
		{what: "two that are named have, some of the layers each", room: 0.9, devices: 8, options: Options{Device: "abacus:1,0", Split: SplitLayers}, name: two + " by layer", opened: 1},
		{what: "two have, a share of each layer", room: 0.9, devices: 8, options: Options{Split: SplitTensor}, name: two, opened: 2},
		{what: "two have, by name", room: 0.9, devices: 8, options: Options{Device: "abacus"}, name: two, opened: 2},
		{what: "two have, and weights may not stream", room: 0.9, devices: 8, options: Options{StreamWeights: StreamNever}, name: two, opened: 2},
		{what: "four have", room: 0.75, devices: 4, name: four, opened: 3},
		{what: "four would have", room: 0.75, devices: 3, name: one, opened: 3, streams: true},
		{what: "there is one", room: 0.9, devices: 1, name: one, opened: 1, streams: true},
		{what: "the first", room: 0.9, devices: 8, options: Options{Device: "abacus:0"}, name: one, opened: 1, streams: true},
		{what: "a part of two has room", room: 1.8, devices: 8, options: Options{DeviceMemory: MemoryLimit{Fraction: 0.5}}, name: two, opened: 2},
		{what: "a limit of all together", room: 1.1, devices: 2, options: Options{DeviceMemory: MemoryLimit{Bytes: need * 3 / 4}}, name: one, opened: 3, streams: true},
		{what: "weights are to stream", room: 0.9, devices: 8, options: Options{StreamWeights: StreamAlways}, name: one, opened: 1, streams: true},
		{what: "operations are checked", room: 0.9, devices: 8, options: Options{CheckReference: 1}, name: one, opened: 1, streams: true},
		{what: "tokens are checked", room: 0.9, devices: 8, options: Options{CheckArgmax: true}, name: two, opened: 2},
		{what: "two cannot run it", room: 0.9, devices: 8, fails: errors.ErrUnsupported, name: one, opened: 3, streams: true},
		{what: "two cannot run it, and weights may not stream", room: 0.9, devices: 8, options: Options{Device: "abacus", StreamWeights: StreamNever}, fails: errors.ErrUnsupported, opened: 3, err: ErrMemory},
		{what: "nothing has room", room: 0.01, devices: 2, opened: 3},
		{what: "nothing has room, by name", room: 0.01, devices: 2, options: Options{Device: "abacus"}, opened: 3, err: ErrMemory},
	} {
		t.Run(test.what, func(t *testing.T) {
			a := *s.abacus
			a.free = int64(test.room * float64(need))
			frames(t, &a, test.devices, test.fails)
			m, got, err := answer(test.options)
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) || a.opened != test.opened {
				t.Fatalf("%d openings, want %d; error %v, want %v", a.opened, test.opened, err, test.err)
			}
			if err == nil {
				if !slices.Equal(got, want) {
					t.Errorf("it answers %v, want %v", got, want)
				}
				if problem := m.DeviceProblem(); m.DeviceName() != test.name || (m.Streaming() != nil) != test.streams || (problem != nil) != (test.name == "") {
					t.Errorf("on %q, want %q; it streams %+v; problem %v", m.DeviceName(), test.name, m.Streaming(), problem)
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			if a.opened != a.closed {
				t.Errorf("%d devices were opened, %d closed", a.opened, a.closed)
			}
			if test.fails != nil { // nothing is compiled for a description
				return
			}
			o := test.options
			o.Context, o.Parallel = 1024, 1
			memory, err := s.description.Memory(o)
			if !errors.Is(err, test.err) || err == nil && (memory.DeviceName != test.name || (memory.Streaming != nil) != test.streams) {
				t.Errorf("planned %+v, %v", memory, err)
			}
			if a.opened != a.closed {
				t.Errorf("%d devices were opened for a description, %d closed", a.opened, a.closed)
			}
		})
	}
}

// Heads run on several devices as on one. About as many of their proposals are right; how many are
// made depends on what is ready when a step is planned.
func TestHeadsOnSeveral(t *testing.T) {
	a := &abacus{Backend: cpu.New(1), free: roomy8G}
	frames(t, a, 2, nil)
	for name, c := range map[string]struct {
		model, head string
		with        Speculative
	}{
		"mtp":   {modeltest.Llama(t, modeltest.Predicting()), "", SpeculativeMTP},
		"eagle": {modeltest.Llama(t, modeltest.LastToken()), modeltest.Eagle(t, modeltest.LastToken()), SpeculativeEAGLE},
	} {
		answer := func(o Options) (ids []int32, m Metrics) {
			t.Helper()
			o.Context, o.Parallel = 256, 1
			model, err := Open(t.Context(), c.model, o)
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			for seed := range uint64(3) {
				r := &Request{PromptTokens: promptOf(int(seed), 40), Generation: Generation{MaxTokens: new(60), IgnoreEnd: true, Sampling: Sampling{Temperature: float32(seed) / 2, Seed: seed}}}
				for e, err := range model.Generate(t.Context(), r) {
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, e.Tokens...)
				}
			}
			return ids, model.Metrics()
		}
		o := Options{Device: "cpu", Speculative: c.with, Draft: c.head, SpeculativeTokens: 3}
		want, _ := answer(Options{Device: "cpu"})
		_, one := answer(o)
		for _, split := range []Split{SplitTensor, SplitLayers} {
			o.Device, o.Split = "abacus:0,1", split
			got, m := answer(o)
			if !slices.Equal(got, want) || m.AcceptedTokens == 0 || m.AcceptedTokens < one.AcceptedTokens*3/4 {
				t.Errorf("%s, %v: tokens %v, want %v; %d of %d proposed tokens were right, on one device %d of %d", name, split, got, want, m.AcceptedTokens, m.ProposedTokens, one.AcceptedTokens, one.ProposedTokens)
			}
		}
	}
}

// A model that devices cannot divide is not planned for several of them.
func TestIndivisible(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	frames(t, s.abacus, 2, nil)
	p := *s.description.program.Program
	p.Inputs = 1
	o := Options{Device: "abacus:0,1", Context: 1024, Split: SplitLayers}
	_, err := o.use(t.Context(), &p, synthtest.Deep.Context, nil, func([]replica) error { return nil })
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "a program with inputs in 2 parts") {
		t.Errorf("a program with inputs: %v", err)
	}
}

// The least memory of a model on several devices says which they are.
func TestLeastOfSeveral(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	a := *s.abacus
	a.free = roomy8G
	frames(t, &a, 4, nil)
	d, err := Describe(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int{"abacus:2,1": {2, 1}, "abacus:3": {3}, "abacus": {0}, "cpu": nil} {
		if l, err := d.Least(t.Context(), Options{Device: name, Context: 1024}); err != nil || !slices.Equal(l.Numbers, want) {
			t.Errorf("%s: %+v, %v; want the devices %v", name, l, err, want)
		}
	}
}
