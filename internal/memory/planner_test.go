package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A roomy backend reports these sizes of weights and free memory.
type roomy struct {
	backends.Backend
	cpu     *cpu.Backend
	weights int
	free    int64
}

func (r *roomy) Rounds() tensor.DType                       { return r.cpu.Rounds() }
func (r *roomy) Memory() plan.MemoryInfo                    { return plan.MemoryInfo{Free: r.free} }
func (r *roomy) Weights(*plan.Program, plan.Limits) int     { return r.weights }
func (r *roomy) Scratch(p *plan.Program, l plan.Limits) int { return r.cpu.Scratch(p, l) }

func build(t *testing.T, path string) *arch.Model {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	m, err := arch.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The cache gets what the weights leave, as much as possible: at least enough for one answer, at
// most what all can use.
func TestSizes(t *testing.T) {
	const most, gib = 1 << 16, 1 << 30
	m := build(t, modeltest.Llama(t, modeltest.Context(most), modeltest.HeadDim(32)))
	backend := cpu.New(1)
	memory := func(c engine.Config) engine.Memory {
		size, err := c.Memory(m.Program, backend)
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	config := func(context, states int) engine.Config {
		return engine.Config{Context: context, Parallel: 2, States: states, Cache: tensor.F16, Activations: cpu.Rounds}
	}
	// one returns what an answer and a step take, all what two answers take.
	one := func(context int) int64 {
		size := memory(config(context, 1))
		return int64(size.States) + int64(size.Scratch)
	}
	all := func(context int) int64 {
		size := memory(config(context, 0))
		return int64(size.States) + int64(size.Scratch)
	}
	states := func(context int) int64 { return int64(memory(config(context, 1)).States) }
	for _, test := range []struct {
		name    string
		o       Options
		weights int
		free    int64
		want    int   // context; 0: an error
		states  int64 // of the cache, at most; it may be a little smaller
		says    []string
	}{
		{name: "all", free: 2 * all(most), want: most, states: 2 * states(most)},
		{name: "more than all", free: 20 * all(most), want: most, states: 2 * states(most)},
		{name: "one", free: 2 * one(most), want: most, states: states(most)},
		{name: "one and a half", free: 2*one(most) + states(most), want: most, states: states(most) * 3 / 2},
		{name: "one, beside weights", weights: gib, free: gib + 2*one(most), want: most, states: states(most)},
		{name: "a byte too few", weights: gib, free: gib + 2*one(most) - 1, want: most / 2, states: states(most)},
		{name: "a little", weights: gib, free: gib + 2*one(smallest), want: smallest, states: states(smallest)},
		{name: "less than a little", weights: gib, free: gib + 2*one(smallest) - 1,
			says: []string{"one answer of 512 tokens", "beside 1.0 GiB of weights", "1.0 GiB are free", "it would fit with a context of 512"}},
		{name: "weights alone", weights: 3 * gib, free: 2 * gib, says: []string{"the weights take 3.0 GiB, 2.0 GiB are free", "smaller quantization"}},
		{name: "asked for", o: Options{Context: most}, weights: gib, free: gib + one(most), want: most, states: states(most)},
		{name: "asked for, a byte too few", o: Options{Context: most}, weights: gib, free: gib + one(most) - 1,
			says: []string{"one answer of 65536 tokens", "beside 1.0 GiB of weights", "it would fit with a context of 32768, or with a cache of q8"}},
		{name: "asked for, weights alone", o: Options{Context: most}, weights: 3 * gib, free: 2 * gib, says: []string{"the weights take 3.0 GiB, 2.0 GiB are free"}},
		{name: "nobody knows", weights: gib, want: most, states: 2 * states(most)},
		{name: "asked for, free unknown", o: Options{Context: 1000}, weights: gib, want: 1000, states: 2 * states(1000)},
		{name: "limited", o: Options{Limit: gib + one(most)}, weights: gib, free: 100 * gib, want: most, states: states(most)},
		{name: "limited to a byte less", o: Options{Limit: gib + one(most) - 1}, weights: gib, free: 100 * gib, want: most / 2, states: states(most)},
		{name: "limited, free unknown", o: Options{Limit: gib + one(most)}, weights: gib, want: most, states: states(most)},
		{name: "limited to more than is free", o: Options{Limit: 100 * gib}, weights: gib, free: gib + one(most), want: most, states: states(most)},
		{name: "limited, asked for", o: Options{Context: most, Limit: gib + one(most) - 1}, weights: gib, free: 100 * gib,
			says: []string{"1.0 GiB may be taken", "a context of 32768", "a cache of q8", fmt.Sprintf("a memory of %d MiB", (gib+one(most)+1<<20-1)>>20)}},
		{name: "f32", o: Options{Cache: tensor.F32, Activations: cpu.Rounds, Context: most}, free: one(most) + states(most) - 1,
			says: []string{"it would fit with a context of 32768, or with a cache of f16"}},
		{name: "the host's part", o: Options{HostCache: 1 << 20}, free: 1<<20 + 2*one(most), want: most, states: states(most)},
		{name: "the host's part, a byte too few", o: Options{HostCache: 1 << 20}, free: 1<<20 + 2*one(most) - 1, want: most / 2, states: states(most)},
		{name: "the host's part is too large", o: Options{HostCache: 1 << 60}, free: gib},
	} {
		o := test.o
		o.Parallel = 2
		if o.Activations == tensor.F32 {
			o.Cache, o.Activations = tensor.F16, cpu.Rounds
		}
		b := &roomy{cpu: backend, weights: test.weights, free: test.free}
		p := Planner{Program: m.Program, Made: most, Device: &backends.Device{Backend: b, Kind: backends.Processor}, Backend: b, Host: backend.Memory(), Options: o}
		c, err := p.Config()
		if test.want > 0 {
			if err != nil || c.Context != test.want {
				t.Errorf("%s: a context of %d (%v), want %d", test.name, c.Context, err, test.want)
				continue
			}
			size := memory(c)
			if got := int64(size.States); got < test.states-test.states/64-64<<10 || got > test.states {
				t.Errorf("%s: %d bytes of cache, want %d", test.name, got, test.states)
			}
			if need := int64(test.weights) + int64(size.States) + int64(size.Scratch); test.free > 0 && need > test.free || o.Limit > 0 && need > o.Limit {
				t.Errorf("%s: %d bytes are taken, of %d and %d", test.name, need, test.free, o.Limit)
			}
			continue
		}
		if !errors.Is(err, ErrTooLittle) {
			t.Errorf("%s: error %v, want one of the memory", test.name, err)
			continue
		}
		for _, part := range test.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not say %q", test.name, err, part)
			}
		}
	}
}
