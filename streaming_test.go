package realizar

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
	"github.com/realizar/realizar/tensor"
)

// A streamer is a model and an abacus to run it on.
type streamer struct {
	*testing.T
	path        string
	description *Description
	abacus      *abacus
}

func newStreamer(t *testing.T, s *synth.Shape) *streamer {
	path := synthtest.File(t, s, "Q8_0")
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	return &streamer{t, path, d, &abacus{Backend: cpu.New(1), free: 64 << 30}}
}

// takes returns the memory that one answer of a context takes, with all weights or with the fewest.
func (s *streamer) takes(context, weights int) (m engine.Memory, all int64) {
	s.Helper()
	c := engine.Config{
		Context: context, Parallel: 1, Cache: tensor.F16, Activations: s.abacus.Rounds(), States: 1, Weights: weights,
		Pinned: int(s.abacus.Backend.Memory().Free / 4 * 3),
	}
	m, err := c.Memory(s.description.program.Program, s.abacus)
	if err != nil {
		s.Fatal(err)
	}
	return m, int64(m.Weights) + int64(m.States) + int64(m.Scratch)
}

// A limit may be a fraction of the device's memory, if the device reports its total.
func TestStreamingFraction(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
	present(t, s.abacus, nil)
	_, need := s.takes(512, 1)
	half := Options{Device: "abacus", DeviceMemory: MemoryLimit{Fraction: 0.5}, Parallel: 1}
	s.abacus.free = 0
	if _, err := s.description.Memory(half); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "a limit of 50% on Large Abacus, which does not report its memory; give the limit in bytes") {
		t.Errorf("half of what nobody knows: %v", err)
	}
	s.abacus.free = 2 * need
	if m, err := s.description.Memory(half); err != nil || m.Total > need || m.Limit != need || m.Streaming == nil {
		t.Errorf("half of it: %+v, %v", m, err)
	}
	s.abacus.free = need * 64 / 63
	whole := half
	whole.DeviceMemory.Fraction = 1
	if m, err := s.description.Memory(whole); err != nil || m.Context != 512 || m.Limit != s.abacus.free || len(m.Streaming.Layers) != 1 {
		t.Errorf("all of it: %+v, %v", m, err)
	}
}

// A model that does not fit a device streams its weights.
func TestStreamingOpen(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
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
	if n == 0 || n*int(x.SlotBytes) != int(x.Streamed) { // all layers have the same size
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

// The expected time of a step is the longer of reading and copying, plus fetching experts.
func TestExpect(t *testing.T) {
	s := newStreamer(t, &synthtest.Deep)
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

	mixed := newStreamer(t, &synthtest.Mixture)
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
