package realizar

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/synth"
)

// deepShape is a model whose layers are most of it.
var deepShape = synth.Shape{
	Name: "deep", Architecture: "llama", Layers: 12, Hidden: 256, FFN: 1024, Heads: 4, KVHeads: 1, HeadDim: 64, Vocab: 600, Context: 16384, RopeBase: 1e4, Eps: 1e-5,
}

// mixtureShape is one of experts.
var mixtureShape = synth.Shape{
	Name: "mixture", Architecture: "qwen3moe", Layers: 3, Hidden: 256, FFN: 256, Heads: 4, KVHeads: 1, HeadDim: 64, Vocab: 600, Context: 512,
	Experts: 16, Used: 2, ExpertFFN: 256, RopeBase: 1e4, Eps: 1e-6, QKNorm: true,
}

func synthetic(t *testing.T, s *synth.Shape) string {
	t.Helper()
	mix, ok := synth.FindMix("Q8_0")
	if !ok {
		t.Fatal("no mix Q8_0")
	}
	f, err := synth.New(s, mix, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), s.Name+".gguf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(t.Context(), file, 1), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A streamer plans a model on an abacus of so much memory.
type streamer struct {
	*testing.T
	path        string
	description *Description
	abacus      *abacus
}

func newStreamer(t *testing.T, s *synth.Shape) *streamer {
	path := synthetic(t, s)
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	return &streamer{t, path, d, &abacus{Backend: cpu.New(1), free: 64 << 30}}
}

func (s *streamer) planner(o Options) *planner {
	p := &planner{program: s.description.program, made: s.description.Dimensions.Context, options: o}
	p.on(s.abacus)
	return p
}

// sizes is what o makes of the model, what that takes, and where weights lie.
func (s *streamer) sizes(o Options) (c engine.Config, takes engine.Memory, weights plan.Streaming, err error) {
	s.Helper()
	c, err = s.planner(o).sizes()
	if err != nil {
		if !errors.Is(err, ErrMemory) {
			s.Fatal(err)
		}
		return c, takes, weights, err
	}
	if takes, err = c.Memory(s.description.program, s.abacus); err != nil {
		s.Fatal(err)
	}
	return c, takes, s.abacus.Streaming(s.description.program, c.Limits(s.description.program)), nil
}

// takes is what one answer of a context takes, with all weights or with the fewest.
func (s *streamer) takes(context, weights int) (m engine.Memory, all int64) {
	s.Helper()
	p := s.planner(Options{Context: context, Parallel: 1})
	c, err := p.config()
	if err != nil {
		s.Fatal(err)
	}
	c.States, c.Weights, c.Pinned = 1, weights, p.pinned()
	if m, err = c.Memory(p.program, p.backend); err != nil {
		s.Fatal(err)
	}
	return m, int64(m.Weights) + int64(m.States) + int64(m.Scratch)
}

// Whatever a device's memory is limited to, no more is taken of it, as much of it as
// there is use for, and what works still works with more.
func TestStreamingWithinLimit(t *testing.T) {
	for _, shape := range []*synth.Shape{&deepShape, &mixtureShape} {
		s := newStreamer(t, shape)
		whole, most := s.takes(shape.Context, 0)
		fewest, _ := s.takes(smallest, 1)
		works, streamed, context := false, false, 0
		for limit := most / 64; limit < most*2; limit += most / 64 {
			o := Options{DeviceMemory: MemoryLimit{Bytes: limit}, Parallel: 2}
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

// An automatic context is halved to 4096 before anything streams, one that was asked
// for is not.
func TestStreamingContext(t *testing.T) {
	s := newStreamer(t, &deepShape)
	_, enoughTakes := s.takes(enough, 0)
	_, allTakes := s.takes(deepShape.Context, 0)
	least, asked := s.takes(2048, 1)
	for _, test := range []struct {
		name    string
		o       Options
		limit   int64
		context int // or 0: an error
		streams bool
		says    []string
	}{
		{name: "all", limit: allTakes, context: deepShape.Context},
		{name: "a smaller context", limit: enoughTakes, context: enough},
		{name: "never", o: Options{StreamWeights: StreamNever}, limit: enoughTakes - 1, context: enough / 2},
		{name: "asked for", o: Options{Context: deepShape.Context}, limit: allTakes, context: deepShape.Context},
		{name: "asked for, a byte too few", o: Options{Context: deepShape.Context}, limit: allTakes - 1, context: deepShape.Context, streams: true},
		{name: "asked for, never, a byte too few", o: Options{Context: deepShape.Context, StreamWeights: StreamNever}, limit: allTakes - 1,
			says: []string{"one answer of 16384 tokens", "of weights, ", "a context of 8192", "weights that stream", fmt.Sprintf("a device memory of %d MiB", mebibytes(allTakes))}},
		{name: "asked for, always", o: Options{Context: 2048, StreamWeights: StreamAlways}, limit: allTakes, context: 2048, streams: true},
		{name: "asked for, the least", o: Options{Context: 2048}, limit: asked, context: 2048, streams: true},
		{name: "asked for, less than the least", o: Options{Context: 2048}, limit: asked - 1,
			says: []string{"one answer of 2048 tokens", "of weights where all that can stream do, ", "may be taken on Large Abacus", "a context of 1024", fmt.Sprintf("a device memory of %d MiB", mebibytes(asked))}},
		{name: "less than what cannot stream", limit: int64(least.Weights) - 1, says: []string{"the weights take ", " where all that can stream do, ", "a device memory of "}},
	} {
		o := test.o
		o.DeviceMemory, o.Parallel = MemoryLimit{Bytes: test.limit}, 1
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
		if all := o.StreamWeights == StreamAlways; all != (len(weights.Layers) == deepShape.Layers) && test.name != "asked for, the least" {
			t.Errorf("%s: layers %v stream", test.name, weights.Layers)
		}
	}
}

func mebibytes(n int64) int64 { return (n + 1<<20 - 1) >> 20 }

// What is too little names the smallest number that works.
func TestStreamingSmallestNumber(t *testing.T) {
	for _, shape := range []*synth.Shape{&deepShape, &mixtureShape} {
		s := newStreamer(t, shape)
		for _, o := range []Options{{}, {Context: 300}, {StreamWeights: StreamAlways}, {StreamWeights: StreamNever}, {Parallel: 3, Cache: CacheF32}} {
			o.DeviceMemory = MemoryLimit{Bytes: 1 << 20}
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
			o.DeviceMemory.Bytes = number << 20
			if _, _, _, err := s.sizes(o); err != nil {
				t.Errorf("%s, %+v: %v", shape.Name, o, err)
			}
			o.DeviceMemory.Bytes = (number - 1) << 20
			if _, _, _, err := s.sizes(o); err == nil {
				t.Errorf("%s, %+v: a megabyte less works too", shape.Name, o)
			}
		}
	}
}

// A limit is never above what is free, of which the driver keeps a little.
func TestStreamingFree(t *testing.T) {
	s := newStreamer(t, &deepShape)
	_, need := s.takes(smallest, 1)
	s.abacus.free = need * 64 / 63
	for _, o := range []Options{{}, {DeviceMemory: MemoryLimit{Bytes: 1 << 40}}, {DeviceMemory: MemoryLimit{Fraction: 1}}} {
		o.Parallel = 1
		if c, _, weights, err := s.sizes(o); err != nil || c.Context != smallest || len(weights.Layers) != deepShape.Layers {
			t.Errorf("%v: %+v, %v", o.DeviceMemory, c, err)
		}
	}
	s.abacus.free = need
	if _, _, _, err := s.sizes(Options{Parallel: 1}); err == nil || !strings.Contains(err.Error(), "are free on Large Abacus") || strings.Contains(err.Error(), "a device memory") {
		t.Errorf("a little too few: %v", err)
	}
	s.abacus.free = 0
	if _, _, _, err := s.sizes(Options{DeviceMemory: MemoryLimit{Fraction: 0.5}}); err == nil || !strings.Contains(err.Error(), "say how many bytes") {
		t.Errorf("half of what nobody knows: %v", err)
	}
	s.abacus.free = 2 * need
	if _, takes, weights, err := s.sizes(Options{DeviceMemory: MemoryLimit{Fraction: 0.5}, Parallel: 1}); err != nil || int64(takes.Weights+takes.States+takes.Scratch) > need || !weights.Any() {
		t.Errorf("half of it: %+v, %v", takes, err)
	}
}

// Beside a device, Memory is what of the host's may be pinned: by the cache first, and
// by weights then.
func TestStreamingPinned(t *testing.T) {
	s := newStreamer(t, &deepShape)
	o := Options{StreamWeights: StreamAlways, Memory: 6 << 20, HostCache: 2 << 20}
	c, _, weights, err := s.sizes(o)
	if err != nil || c.Pinned != 4<<20 || weights.Pinned == 0 || weights.Pinned > 4<<20 || weights.Staged == 0 || weights.Pinned+weights.Staged != weights.Streamed {
		t.Errorf("4 MiB for weights: %d, %+v, %v", c.Pinned, weights, err)
	}
	o.Memory = 2 << 20
	if c, _, weights, err := s.sizes(o); err != nil || c.Pinned != 0 || weights.Staged != weights.Streamed {
		t.Errorf("none for weights: %d, %+v, %v", c.Pinned, weights, err)
	}
	o.Memory--
	if _, _, _, err := s.sizes(o); err == nil || !strings.Contains(err.Error(), "2.0 MiB of the host's memory are wanted for the cache, 2.0 MiB may be taken") {
		t.Errorf("less than the cache takes: %v", err)
	}
	host := cpu.New(1).Memory().Free
	if c, _, _, err := s.sizes(Options{StreamWeights: StreamAlways}); err != nil || host > 0 && (int64(c.Pinned) < host/2 || int64(c.Pinned) > host*7/8) {
		t.Errorf("of %d bytes of the host's memory %d may be pinned: %v", host, c.Pinned, err)
	}
}

// A model that a device has no room for runs there, with weights that stream.
func TestStreamingOpen(t *testing.T) {
	s := newStreamer(t, &deepShape)
	present(t, s.abacus, nil)
	_, need := s.takes(1024, 1)
	s.abacus.free = need * 4 / 3
	answer := func(o Options) (ids []int32) {
		t.Helper()
		m, err := Open(t.Context(), s.path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if got := m.Device(); (got == "abacus") != (o.Device != "cpu") || m.DeviceProblem() != nil {
			t.Errorf("on %s: %v", got, m.DeviceProblem())
		}
		if (m.Streaming() != nil) != (o.Device != "cpu") {
			t.Errorf("on %s it streams %+v", m.Device(), m.Streaming())
		}
		for e, err := range m.Generate(t.Context(), &Request{PromptTokens: []int32{1, 2, 3}, Generation: Generation{MaxTokens: new(4), IgnoreEnd: true}}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.Tokens...)
		}
		return ids
	}
	want := answer(Options{Device: "cpu", Context: 1024})
	if got := answer(Options{Context: 1024, Parallel: 1}); !cmp.Equal(got, want) {
		t.Errorf("it answers %v, want %v", got, want)
	}
	if l := s.abacus.limits; l.Weights == 0 || l.Pinned == 0 {
		t.Errorf("it was compiled with %+v", l)
	}

	o := Options{Context: 1024}
	m, err := s.description.Memory(o)
	if err != nil {
		t.Fatal(err)
	}
	x := m.Streaming
	if x == nil || m.Resident != x.Resident+int64(x.Slots)*x.SlotBytes || m.Total != m.Resident+m.States[0].Bytes+m.Scratch || m.Total > s.abacus.free || m.Device != "abacus" {
		t.Errorf("the memory is %+v of %+v", m, x)
	}
	n := 0
	for i, r := range x.Layers {
		if n += r.Last - r.First + 1; r.First > r.Last || i > 0 && r.First <= x.Layers[i-1].Last+1 {
			t.Errorf("layers %v", x.Layers)
		}
	}
	if n == 0 || n*int(x.SlotBytes) != int(x.Streamed) { // all layers are alike
		t.Errorf("%d layers of %d bytes stream: %+v", n, x.SlotBytes, x)
	}
	o.StreamWeights = StreamNever
	if m, err := s.description.Memory(o); err != nil || m.Device != "cpu" || !strings.Contains(m.DeviceProblem, "Large Abacus: not enough memory") || m.Streaming != nil {
		t.Errorf("where weights may not stream: %+v, %v", m, err)
	}
	o.Device = "abacus"
	if _, err := s.description.Memory(o); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "weights that stream") {
		t.Errorf("where weights may not stream, by name: %v", err)
	}
}

// What is expected is the longer of reading and copying, and what experts are missed.
func TestExpect(t *testing.T) {
	s := newStreamer(t, &deepShape)
	present(t, s.abacus, nil)
	expect := func(s *streamer, o Options) *Expectation {
		t.Helper()
		e, err := s.description.Expect(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	const reads, copies = 1 << 30, 1 << 20
	read := s.description.TokenBytes(0, ActivationsAuto, CacheAuto)
	e := expect(s, Options{})
	if want := (Expectation{Bandwidth: reads, Read: read, Step: float64(read) / reads, Rate: reads / float64(read)}); *e != want {
		t.Errorf("resident: %+v, want %+v", e, want)
	}
	m, err := s.description.Memory(Options{StreamWeights: StreamAlways})
	if err != nil {
		t.Fatal(err)
	}
	e = expect(s, Options{StreamWeights: StreamAlways})
	step := float64(m.Streaming.Streamed) / copies
	if want := (Expectation{Bandwidth: reads, Link: copies, Read: read, Copied: m.Streaming.Streamed, Step: step, Rate: 1 / step}); *e != want {
		t.Errorf("streamed: %+v, want %+v", e, want)
	}
	if e := expect(s, Options{Device: "cpu"}); e != nil {
		t.Errorf("of the processor: %+v", e)
	}
	if e := expect(s, Options{DeviceMemory: MemoryLimit{Bytes: 1}}); e != nil {
		t.Errorf("of the processor, as the device has no room: %+v", e)
	}
	if _, err := s.description.Expect(t.Context(), Options{Device: "abacus", DeviceMemory: MemoryLimit{Bytes: 1}}); !errors.Is(err, ErrMemory) {
		t.Errorf("without memory: %v", err)
	}
	s.abacus.measure = errors.New("a bead is loose")
	if _, err := s.description.Expect(t.Context(), Options{}); !errors.Is(err, s.abacus.measure) {
		t.Errorf("a device that fails: %v", err)
	}
	if s.abacus.opened != s.abacus.closed {
		t.Errorf("%d devices were opened, %d closed", s.abacus.opened, s.abacus.closed)
	}

	mixed := newStreamer(t, &mixtureShape)
	present(t, mixed.abacus, nil)
	whole, all := mixed.takes(512, 0)
	o := Options{Context: 512, Parallel: 1, DeviceMemory: MemoryLimit{Bytes: all - int64(whole.Weights)/3}}
	if m, err = mixed.description.Memory(o); err != nil {
		t.Fatal(err)
	}
	x := m.Streaming.Experts
	if x == nil || x.Layers != 3 || x.Of != 16 || x.Used != 2 || x.Kept+x.Shared != 16 || x.Kept == 0 || m.Streaming.Pinned != 3*16*x.Bytes || len(m.Streaming.Layers) > 0 {
		t.Fatalf("experts: %+v of %+v", x, m.Streaming)
	}
	fetched := int64(3 * 2 * float64(16-x.Kept) / 16 * float64(x.Bytes))
	e = expect(mixed, o)
	if got, want := e.Step, float64(e.Read)/reads+float64(fetched)/copies; e.Fetched != fetched || e.Copied != 0 || math.Abs(got-want) > want*1e-9 {
		t.Errorf("of experts %d bytes are fetched in %g s, want %d in %g", e.Fetched, got, fetched, want)
	}
}
