package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/backends/backendstest"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
	"github.com/realizar/realizar/tensor"
)

// An abacus is a device with its own memory, where weights stream.
type abacus struct {
	backends.Backend
	cpu  *cpu.Backend
	free int64
}

func (a *abacus) Description() string                        { return "Large Abacus" }
func (a *abacus) Rounds() tensor.DType                       { return a.cpu.Rounds() }
func (a *abacus) Memory() plan.MemoryInfo                    { return plan.MemoryInfo{Free: a.free, Total: a.free} }
func (a *abacus) Scratch(p *plan.Program, l plan.Limits) int { return a.cpu.Scratch(p, l) }
func (a *abacus) Weights(p *plan.Program, l plan.Limits) int {
	s := a.Streaming(p, l)
	return s.Device()
}
func (a *abacus) Streaming(p *plan.Program, l plan.Limits) plan.Streaming {
	return backendstest.Stream(p, l)
}

// A streamer plans a model on an abacus.
type streamer struct {
	*testing.T
	model  *arch.Model
	abacus *abacus
}

func newStreamer(t *testing.T, s *synth.Shape) *streamer {
	return &streamer{t, build(t, synthtest.File(t, s, "Q8_0")), &abacus{cpu: cpu.New(1), free: 64 << 30}}
}

func (s *streamer) planner(o Options) *Planner {
	if o.Activations == tensor.F32 {
		o.Cache, o.Activations = tensor.F16, s.abacus.Rounds()
	}
	return &Planner{
		Program: s.model.Program, Made: s.model.Spec.Context, Options: o, Host: s.abacus.cpu.Memory(),
		Device: &backends.Device{Backend: s.abacus, Kind: backends.Kind{Name: "abacus", Parallel: 64}}, Backend: s.abacus,
	}
}

// sizes returns the configuration for o, what it takes, and where weights are.
func (s *streamer) sizes(o Options) (c engine.Config, takes engine.Memory, weights plan.Streaming, err error) {
	s.Helper()
	c, err = s.planner(o).Config()
	if err != nil {
		if !errors.Is(err, ErrTooLittle) {
			s.Fatal(err)
		}
		return c, takes, weights, err
	}
	if takes, err = c.Memory(s.model.Program, s.abacus); err != nil {
		s.Fatal(err)
	}
	return c, takes, s.abacus.Streaming(s.model.Program, c.Limits(s.model.Program)), nil
}

// takes returns what one answer of a context takes, with all weights or with the fewest.
func (s *streamer) takes(context, weights int) (m engine.Memory, all int64) {
	s.Helper()
	p := s.planner(Options{Context: context, Parallel: 1})
	c := p.config()
	c.States, c.Weights, c.Pinned = 1, weights, p.Pinned()
	m, err := c.Memory(p.Program, p.Backend)
	if err != nil {
		s.Fatal(err)
	}
	return m, int64(m.Weights) + int64(m.States) + int64(m.Scratch)
}

// Under any limit no more memory is taken, and as much of it as is useful. If a limit works, a
// larger one works too.
func TestStreamingWithinLimit(t *testing.T) {
	for _, shape := range []*synth.Shape{&synthtest.Deep, &synthtest.Mixture} {
		s := newStreamer(t, shape)
		whole, most := s.takes(shape.Context, 0)
		fewest, _ := s.takes(smallest, 1)
		works, streamed, context := false, false, 0
		for limit := most / 64; limit < most*2; limit += most / 64 {
			o := Options{Limit: limit, Parallel: 2}
			c, takes, weights, err := s.sizes(o)
			if err != nil {
				if works {
					t.Errorf("%s: %d bytes do not work, though fewer do: %v", shape.Name, limit, err)
				}
				continue
			}
			if c.Context < context {
				t.Errorf("%s: with %d bytes a context of %d, with fewer %d", shape.Name, limit, c.Context, context)
			}
			works, context = true, c.Context
			total := int64(takes.Weights) + int64(takes.States) + int64(takes.Scratch)
			if total > limit {
				t.Errorf("%s: %d bytes are taken of %d", shape.Name, total, limit)
			}
			if !weights.Any() {
				if c.Weights != 0 || c.Pinned != 0 || takes.Weights != whole.Weights {
					t.Errorf("%s: %+v of which nothing streams", shape.Name, c)
				}
				if c.Context < shape.Context && c.Context < enough && !streamed {
					t.Errorf("%s: with %d bytes a context of %d, though weights could stream", shape.Name, limit, c.Context)
				}
				continue
			}
			streamed = true
			if c.Weights < fewest.Weights || c.Pinned == 0 {
				t.Errorf("%s: %+v with a limit of %d", shape.Name, c, limit)
			}
			if spare, one := limit-total, max(weights.SlotBytes, (weights.Experts.Layers-1)*weights.Experts.Bytes); spare > int64(one) && weights.Staged == 0 && len(weights.Layers) > 1 {
				t.Errorf("%s: %d bytes of %d are left, where a piece takes %d: %+v", shape.Name, spare, limit, one, weights)
			}
			if share := (limit - int64(fewest.Weights)) / 4; c.Context > smallest && int64(takes.States)+int64(takes.Scratch) > share+share/16 {
				t.Errorf("%s: of %d bytes the cache and a step take %d of a context of %d", shape.Name, limit, takes.States+takes.Scratch, c.Context)
			}
		}
		if !works || !streamed || context != shape.Context {
			t.Errorf("%s: no limit works, or nothing streams, or the last context is %d", shape.Name, context)
		}
	}
}

// An automatic context is halved to 4096 before anything streams; a context that was asked for is
// not.
func TestStreamingContext(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	_, enoughTakes := s.takes(enough, 0)
	_, allTakes := s.takes(synthtest.Deep.Context, 0)
	least, asked := s.takes(2048, 1)
	for _, test := range []struct {
		name    string
		o       Options
		limit   int64
		context int // or 0: an error
		streams bool
		says    []string
	}{
		{name: "all", limit: allTakes, context: synthtest.Deep.Context},
		{name: "a smaller context", limit: enoughTakes, context: enough},
		{name: "never", o: Options{StreamNone: true}, limit: enoughTakes - 1, context: enough / 2},
		{name: "ample", o: Options{Ample: true}, limit: enoughTakes, context: enough},
		{name: "ample, all", o: Options{Ample: true}, limit: allTakes, context: synthtest.Deep.Context},
		{name: "ample, a byte too few", o: Options{Ample: true}, limit: enoughTakes - 1, says: []string{"one answer of 4096 tokens"}},
		{name: "ample, never, a byte too few", o: Options{Ample: true, StreamNone: true}, limit: enoughTakes - 1, says: []string{"one answer of 4096 tokens"}},
		{name: "ample, asked for", o: Options{Ample: true, Context: synthtest.Deep.Context}, limit: allTakes, context: synthtest.Deep.Context},
		{name: "ample, asked for, a byte too few", o: Options{Ample: true, Context: synthtest.Deep.Context}, limit: allTakes - 1, says: []string{"one answer of 16384 tokens"}},
		{name: "ample, a short one asked for", o: Options{Ample: true, Context: 2048}, limit: enoughTakes - 1, context: 2048},
		{name: "asked for", o: Options{Context: synthtest.Deep.Context}, limit: allTakes, context: synthtest.Deep.Context},
		{name: "asked for, a byte too few", o: Options{Context: synthtest.Deep.Context}, limit: allTakes - 1, context: synthtest.Deep.Context, streams: true},
		{name: "asked for, never, a byte too few", o: Options{Context: synthtest.Deep.Context, StreamNone: true}, limit: allTakes - 1,
			says: []string{"one answer of 16384 tokens", "of weights, ", "a context of 8192", "weights that stream", fmt.Sprintf("a device memory of %d MiB", mebibytes(allTakes))}},
		{name: "asked for, always", o: Options{Context: 2048, StreamAll: true}, limit: allTakes, context: 2048, streams: true},
		{name: "asked for, the least", o: Options{Context: 2048}, limit: asked, context: 2048, streams: true},
		{name: "asked for, less than the least", o: Options{Context: 2048}, limit: asked - 1,
			says: []string{"one answer of 2048 tokens", "of weights even with streaming, ", "may be taken on Large Abacus", "a context of 1024", fmt.Sprintf("a device memory of %d MiB", mebibytes(asked))}},
		{name: "less than what cannot stream", limit: int64(least.Weights) - 1, says: []string{"the weights take ", " even with streaming, ", "a device memory of "}},
	} {
		o := test.o
		o.Limit, o.Parallel = test.limit, 1
		c, _, weights, err := s.sizes(o)
		if test.context == 0 {
			if err == nil {
				t.Errorf("%s: %+v, want an error", test.name, c)
				continue
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", test.name, err, part)
				}
			}
			continue
		}
		if err != nil || c.Context != test.context || weights.Any() != test.streams {
			t.Errorf("%s: a context of %d, %+v, %v; want %d", test.name, c.Context, weights, err, test.context)
		}
		if all := o.StreamAll; all != (len(weights.Layers) == synthtest.Deep.Layers) && test.name != "asked for, the least" {
			t.Errorf("%s: layers %v stream", test.name, weights.Layers)
		}
	}
}

func mebibytes(n int64) int64 { return (n + 1<<20 - 1) >> 20 }

// The error names the smallest number that works.
func TestStreamingSmallestNumber(t *testing.T) {
	for _, shape := range []*synth.Shape{&synthtest.Deep, &synthtest.Mixture} {
		s := newStreamer(t, shape)
		for _, o := range []Options{{}, {Context: 300}, {StreamAll: true}, {StreamNone: true}, {Parallel: 3, Cache: tensor.F32, Activations: s.abacus.Rounds()}} {
			o.Limit = 1 << 20
			_, _, _, err := s.sizes(o)
			if err == nil {
				t.Fatalf("%s, %+v: a megabyte is enough", shape.Name, o)
			}
			var number int64
			_, after, _ := strings.Cut(err.Error(), "a device memory of ")
			if n, _ := fmt.Sscanf(after, "%d MiB", &number); n != 1 {
				t.Errorf("%s, %+v: %q names no number", shape.Name, o, err)
				continue
			}
			o.Limit = number << 20
			if _, _, _, err := s.sizes(o); err != nil {
				t.Errorf("%s, %+v: %v", shape.Name, o, err)
			}
			o.Limit = (number - 1) << 20
			if _, _, _, err := s.sizes(o); err == nil {
				t.Errorf("%s, %+v: a megabyte less works too", shape.Name, o)
			}
		}
	}
}

// A limit never exceeds the free memory, of which the driver keeps a little.
func TestStreamingFree(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	_, need := s.takes(smallest, 1)
	s.abacus.free = need * 64 / 63
	for _, o := range []Options{{}, {Limit: 1 << 40}, {Limit: s.abacus.free}} {
		o.Parallel = 1
		if c, _, weights, err := s.sizes(o); err != nil || c.Context != smallest || len(weights.Layers) != synthtest.Deep.Layers {
			t.Errorf("%d: %+v, %v", o.Limit, c, err)
		}
	}
	s.abacus.free = need
	if _, _, _, err := s.sizes(Options{Parallel: 1}); err == nil || !strings.Contains(err.Error(), "are free on Large Abacus") || strings.Contains(err.Error(), "a device memory") {
		t.Errorf("a little too few: %v", err)
	}
	s.abacus.free = 2 * need
	if _, takes, weights, err := s.sizes(Options{Limit: need, Parallel: 1}); err != nil || int64(takes.Weights+takes.States+takes.Scratch) > need || !weights.Any() {
		t.Errorf("half of it: %+v, %v", takes, err)
	}
}

// Pinned bounds the host memory that is pinned: first for the cache, then for weights.
func TestStreamingPinned(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	o := Options{StreamAll: true, Pinned: 6 << 20, HostCache: 2 << 20}
	c, _, weights, err := s.sizes(o)
	if err != nil || c.Pinned != 4<<20 || weights.Pinned == 0 || weights.Pinned > 4<<20 || weights.Staged == 0 || weights.Pinned+weights.Staged != weights.Streamed {
		t.Errorf("4 MiB for weights: %d, %+v, %v", c.Pinned, weights, err)
	}
	o.Pinned = 2 << 20
	if c, _, weights, err := s.sizes(o); err != nil || c.Pinned != 0 || weights.Staged != weights.Streamed {
		t.Errorf("none for weights: %d, %+v, %v", c.Pinned, weights, err)
	}
	o.Pinned--
	if _, _, _, err := s.sizes(o); err == nil || !strings.Contains(err.Error(), "the cache needs 2.0 MiB of host memory, 2.0 MiB may be taken") {
		t.Errorf("less than the cache takes: %v", err)
	}
	host := cpu.New(1).Memory().Free
	if c, _, _, err := s.sizes(Options{StreamAll: true}); err != nil || host > 0 && (int64(c.Pinned) < host/2 || int64(c.Pinned) > host*7/8) {
		t.Errorf("of %d bytes of the host's memory %d may be pinned: %v", host, c.Pinned, err)
	}
}
