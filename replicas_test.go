package realizar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/backends/backendstest"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A row is several abaci, by number.
type row struct {
	mu      sync.Mutex
	devices map[int]*bead
	free    map[int]int64 // bytes of a device that has not roomy8G
}

// A bead is a device of a row.
type bead struct {
	abacus
	name string
	lost atomic.Bool // all steps fail
}

var errBead = errors.New("the bead is off its wire")

func (b *bead) Description() string { return b.name }

func (b *bead) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	x, err := b.abacus.Compile(ctx, p, l, loaded)
	return backendstest.Failing(x, func() error {
		if b.lost.Load() {
			return errBead
		}
		return nil
	}), err
}

// rowOf makes n devices with a name each those of the process.
func rowOf(t *testing.T, names ...string) *row {
	r := &row{devices: map[int]*bead{}}
	all := backends.All
	t.Cleanup(func() { backends.All = all })
	backends.All = backends.List{{Name: "abacus", Parallel: 4, Open: func(o backends.Options) (backends.Backend, error) {
		if o.Index >= len(names) {
			return nil, fmt.Errorf("device %d of %d", o.Index, len(names))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		free, little := r.free[o.Index]
		if !little {
			free = roomy8G
		}
		r.devices[o.Index] = &bead{abacus: abacus{Backend: cpu.New(1), free: free}, name: names[o.Index]}
		return r.devices[o.Index], nil
	}}, backends.Processor}
	return r
}

// answered returns the tokens of the answer to a prompt, and how many of the prompt were cached.
func answered(ctx context.Context, m *Model, prompt []int32, seed uint64) (tokens []int32, cached int, err error) {
	r := &Request{PromptTokens: prompt, Generation: Generation{MaxTokens: new(12), IgnoreEnd: true, Sampling: Sampling{Temperature: 1, Seed: seed}}}
	for e, err := range m.Generate(ctx, r) {
		if err != nil {
			return tokens, cached, err
		}
		tokens = append(tokens, e.Tokens...)
		if e.Finish != nil {
			cached = e.Finish.Usage.CachedTokens
		}
	}
	return tokens, cached, nil
}

// promptOf returns n tokens that depend on a number.
func promptOf(number, n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32((number*7919 + i*31 + i*i*number) % 200)
	}
	return p
}

// Two replicas give the answers of one copy, share the work, find shared beginnings, and report one
// cache.
func TestReplicas(t *testing.T) {
	rowOf(t, "bead", "bead")
	path := modeltest.Llama(t, modeltest.Context(512))
	one, err := Open(t.Context(), path, Options{Device: "abacus"})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close() //nolint:errcheck // it only gives the answers
	const beginnings, each = 6, 20
	prompt := func(i int) []int32 { return append(promptOf(i%beginnings, 96), promptOf(100+i, 8)...) }
	want := make([][]int32, beginnings*each)
	for i := range want {
		if want[i], _, err = answered(t.Context(), one, prompt(i), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}

	type page struct {
		hash uint64
		pool int
	}
	cached := map[page]bool{}
	two, err := Open(t.Context(), path, Options{Device: "abacus", Replicas: 2, CacheEvents: func(e CacheEvent) {
		p := page{e.Hash, e.Pool}
		switch e.Change {
		case CacheCleared:
			clear(cached)
		default:
			if stored := e.Change == CacheStored; cached[p] == stored {
				t.Errorf("page %x: stored %v twice", e.Hash, stored)
			} else if cached[p] = stored; !stored {
				delete(cached, p)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if two.Replicas() != 2 || two.Parallel() != 8 || two.Metrics().Device.Total != 2*roomy8G {
		t.Errorf("%d replicas, %d answers at a time, %d bytes", two.Replicas(), two.Parallel(), two.Metrics().Device.Total)
	}
	var found atomic.Int32
	var next atomic.Int32
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(want); i = int(next.Add(1)) - 1 {
				got, n, err := answered(t.Context(), two, prompt(i), uint64(i))
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("request %d: %v, want %v, error %v", i, got, want[i], err)
				}
				if n >= 96 {
					found.Add(1)
				}
			}
		})
	}
	clients.Wait()
	// The first request with each beginning cannot find it.
	if n := beginnings * (each - 1); int(found.Load()) < n*95/100 {
		t.Errorf("%d of %d requests have found their beginning", found.Load(), n)
	}
	m := two.Metrics()
	for i, r := range m.Replicas {
		if r.Steps == 0 || r.AnswerTokens == 0 || r.Failed {
			t.Errorf("replica %d: %+v", i, r)
		}
	}
	if m.AnswerTokens != 12*beginnings*each || m.Ended[EndedByLength] != beginnings*each || m.EndToEnd.Count() != beginnings*each || m.Running+m.Waiting != 0 {
		t.Errorf("%d tokens, answers ended %v", m.AnswerTokens, m.Ended)
	}
	if len(cached) == 0 {
		t.Error("no events")
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if len(cached) > 0 {
		t.Errorf("%d pages are left", len(cached))
	}
}

// The model answers though a device is lost, and its cache is that of the others.
func TestReplicasLoseOne(t *testing.T) {
	r := rowOf(t, "bead", "bead")
	pages := 0
	m, err := Open(t.Context(), modeltest.Llama(t, modeltest.Context(512)), Options{Replicas: 2, CacheEvents: func(e CacheEvent) {
		switch e.Change {
		case CacheStored:
			pages++
		case CacheRemoved:
			pages--
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, _, err := answered(t.Context(), m, promptOf(i, 70), 1); err != nil {
			t.Fatal(err)
		}
	}
	r.devices[1].lost.Store(true)
	failures := 0
	for i := range 40 {
		if _, _, err := answered(t.Context(), m, promptOf(i+8, 70), 1); errors.Is(err, errBead) {
			failures++
		} else if err != nil {
			t.Error(err)
		}
	}
	if failures != 1 {
		t.Errorf("%d of 40 requests have failed, one after the other; want 1", failures)
	}
	if all := m.Metrics().Replicas; all[0].Failed || !all[1].Failed {
		t.Errorf("%+v", all)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestReplicasRefused(t *testing.T) {
	rowOf(t, "bead", "bead", "pebble")
	path := modeltest.Llama(t)
	for name, test := range map[string]struct {
		options Options
		says    string
	}{
		"the processor": {Options{Device: "cpu", Replicas: 2}, "the processor is one"},
		"too few":       {Options{Device: "abacus:0,7", Replicas: 2}, "device 7 of 3"},
		"unlike":        {Options{Device: "abacus:0,2", Replicas: 2}, "replica 0 is on bead and replica 1 on pebble"},
		"uneven":        {Options{Device: "abacus:0,1,2", Replicas: 2}, "3 devices for 2 replicas"},
		"no groups":     {Options{Device: "abacus:0,1,2,3", Replicas: 2}, "a model runs on one abacus device"},
		"streaming":     {Options{Replicas: 2, StreamWeights: StreamAlways}, "--stream-weights"},
		"negative":      {Options{Replicas: -1}, "-1 replicas"},
	} {
		m, err := Open(t.Context(), path, test.options)
		if err == nil {
			_ = m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

// Two replicas that check drafts, of a draft model or of what followed before, give the answers of
// one copy that samples every token.
func TestReplicasDraft(t *testing.T) {
	rowOf(t, "bead", "bead")
	path := modeltest.Llama(t, modeltest.Context(512))
	one, err := Open(t.Context(), path, Options{Device: "abacus", Speculative: SpeculativeOff})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()   //nolint:errcheck // it only gives the answers
	const requests = 20 // each is asked three times, so that answers repeat
	prompt := func(i int) []int32 { return append(promptOf(i%4, 60), promptOf(i, 5)...) }
	var want [requests][]int32
	for i := range want {
		if want[i], _, err = answered(t.Context(), one, prompt(i), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string]Options{
		"suffix": {Speculative: SpeculativeSuffix, SpeculativeTokens: 4},
		"draft":  {Speculative: SpeculativeDraft, SpeculativeTokens: 3, Draft: modeltest.Llama(t, modeltest.Context(512), modeltest.DType(tensor.Q8_0))},
	} {
		t.Run(name, func(t *testing.T) {
			o.Device, o.Replicas = "abacus", 2
			two, err := Open(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			var next atomic.Int32
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					for n := int(next.Add(1)) - 1; n < 3*requests; n = int(next.Add(1)) - 1 {
						i := n % requests
						if got, _, err := answered(t.Context(), two, prompt(i), uint64(i)); err != nil || !slices.Equal(got, want[i]) {
							t.Errorf("request %d: %v, want %v, error %v", i, got, want[i], err)
						}
					}
				})
			}
			clients.Wait()
			m := two.Metrics()
			for i, r := range m.Replicas {
				if r.AnswerTokens == 0 {
					t.Errorf("replica %d has given no token", i)
				}
			}
			if m.ProposedTokens == 0 {
				t.Error("nothing was proposed")
			}
			if err := two.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Replicas that are opened again find what each had cached, and others import it.
func TestReplicasKeepAndTransfer(t *testing.T) {
	rowOf(t, "bead", "bead")
	path := modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32))
	open := func(kept *KeptCache) *Model {
		t.Helper()
		m, err := Open(t.Context(), path, Options{Device: "abacus", Replicas: 2, HostCache: 16 << 20, TransferCache: true, Kept: kept})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const prompts, tokens = 8, 130
	found := func(m *Model) (cached [prompts]int, answers [prompts][]int32) {
		t.Helper()
		for i := range prompts {
			var err error
			if answers[i], cached[i], err = answered(t.Context(), m, promptOf(i, tokens), uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		return cached, answers
	}
	kept := new(KeptCache)
	first := open(kept)
	_, want := found(first)
	if all := first.Metrics().Replicas; all[0].PromptTokens == 0 || all[1].PromptTokens == 0 {
		t.Errorf("a copy has run no prompt: %+v", all)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	again, other := open(kept), open(nil)
	cached, answers := found(again)
	for i := range prompts {
		if cached[i] < tokens-32 || !slices.Equal(answers[i], want[i]) {
			t.Errorf("prompt %d: %d tokens are kept; %v, want %v", i, cached[i], answers[i], want[i])
		}
		x, err := again.ExportCache(t.Context(), promptOf(i, tokens), "")
		if err != nil {
			t.Fatal(err)
		}
		err = other.ImportCache(t.Context(), promptOf(i, tokens), "", x.Tokens(), func(ctx context.Context, skip int, to [][]byte) error {
			return x.Read(ctx, skip, func(_ context.Context, from [][]byte) error {
				for k := range to {
					copy(to[k], from[k])
				}
				return nil
			})
		})
		if x.Release(); err != nil {
			t.Errorf("prompt %d: %v", i, err)
		}
	}
	cached, answers = found(other)
	for i := range prompts {
		if cached[i] < tokens-32 || !slices.Equal(answers[i], want[i]) {
			t.Errorf("prompt %d: %d tokens are transferred; %v, want %v", i, cached[i], answers[i], want[i])
		}
	}
	for _, m := range []*Model{again, other} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The memory that is planned for replicas is what they take when the model is opened: each has the
// Parallel and the DeviceMemory of the options and its part of HostCache, and all have the context
// for which the least device has room.
func TestReplicasMemory(t *testing.T) {
	const mib = 1 << 20
	path := modeltest.Llama(t, modeltest.Context(8192))
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		free     map[int]int64
		options  Options
		contexts int // of all replicas
		alike    bool
	}{
		"alike":          {nil, Options{Parallel: 3}, 8192, true},
		"one is smaller": {map[int]int64{1: 4 * mib}, Options{Parallel: 3}, 4096, false},
		"a context":      {map[int]int64{0: 4 * mib}, Options{Parallel: 4, Context: 3000}, 3000, false},
		"limits":         {nil, Options{Parallel: 2, DeviceMemory: MemoryLimit{Bytes: 3 * mib}, Memory: 32 * mib, HostCache: 9 * mib}, 4096, true},
		"a share":        {map[int]int64{1: 6 * mib}, Options{Parallel: 2, DeviceMemory: MemoryLimit{Fraction: 0.5}}, 4096, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rowOf(t, "bead", "bead", "bead")
			r.free = test.free
			o := test.options
			o.Device, o.Replicas = "abacus", 3
			planned, err := d.Replicas(o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range planned {
				if r.devices[i].closed != 1 {
					t.Errorf("device %d is open", i)
				}
			}
			first, err := d.Memory(o)
			if diff := cmp.Diff(planned[0], first); err != nil || diff != "" {
				t.Errorf("the first replica: %v (-Replicas +Memory)\n%s", err, diff)
			}
			m, err := Open(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close() //nolint:errcheck // nothing runs
			if len(planned) != m.Replicas() || m.Context() != test.contexts || m.Parallel() != len(planned)*o.Parallel {
				t.Errorf("%d replicas planned and %d opened, with a context of %d and %d answers at a time", len(planned), m.Replicas(), m.Context(), m.Parallel())
			}
			for i, p := range planned {
				l := &r.devices[i].limits
				states, err := l.StateBytes(d.program.Program)
				if err != nil {
					t.Fatal(err)
				}
				if p.Context != m.Context() || p.Parallel != o.Parallel || len(p.States) != 1 || p.States[0].Bytes != int64(states) || p.Host != o.HostCache/3 {
					t.Errorf("replica %d: %+v, opened with a context of %d and %d bytes of states", i, p, m.Context(), states)
				}
				if limit := o.DeviceMemory.Of(p.Free); limit > 0 && (p.Limit != limit || p.Total > limit) {
					t.Errorf("replica %d: %d bytes of %d, want a limit of %d", i, p.Total, p.Limit, limit)
				}
				if alike := p.Total == planned[0].Total; test.alike && !alike {
					t.Errorf("replica %d takes %d bytes, the first one %d", i, p.Total, planned[0].Total)
				}
			}
			if !test.alike && planned[0].Total == planned[1].Total {
				t.Errorf("replicas on unlike devices take %d bytes each", planned[0].Total)
			}
		})
	}
}

// What Open refuses of replicas, and what does not fit, Replicas refuses with the same error.
func TestReplicasMemoryRefused(t *testing.T) {
	r := rowOf(t, "bead", "bead", "pebble")
	r.free = map[int]int64{1: 100 << 10}
	path := modeltest.Llama(t)
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options Options
		says    string
	}{
		"the processor":       {Options{Device: "cpu", Replicas: 2}, "the processor is one"},
		"too few":             {Options{Device: "abacus:0,7", Replicas: 2}, "replica 1 of 2: device 7 of 3"},
		"unlike":              {Options{Device: "abacus:0,2", Replicas: 2}, "replica 0 is on bead and replica 1 on pebble"},
		"streaming":           {Options{Replicas: 2, StreamWeights: StreamAlways}, "--stream-weights"},
		"no room":             {Options{Device: "abacus", Replicas: 2}, "replica 1 of 2: "},
		"no host room":        {Options{Device: "abacus:0", Memory: 1 << 20, HostCache: 3 << 20}, "may be taken"},
		"no part of the host": {Options{Device: "abacus", Replicas: 2, Memory: 1 << 20, HostCache: 3 << 20}, "replica 0 of 2: not enough memory: the cache needs 1.5 MiB of host memory, 512.0 KiB may be taken"},
	} {
		_, err := d.Replicas(test.options)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
			continue
		}
		m, same := Open(t.Context(), path, test.options)
		if same == nil {
			_ = m.Close()
		}
		if same == nil || same.Error() != err.Error() {
			t.Errorf("%s: planned: %v\nopened: %v", name, err, same)
		}
	}
}
