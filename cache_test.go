package realizar_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// ids returns n token ids of a small vocabulary.
func ids(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i*i*31+7) % 250
	}
	return list
}

// A cached prefix is found again, in whole pages of 32 tokens, and does not change the answer.
func TestCachedPrefix(t *testing.T) {
	for name, options := range map[string][]modeltest.Option{
		"plain": {modeltest.Context(1024)}, "window": {modeltest.Context(1024), modeltest.Window(40)}, "Q8_0": {modeltest.Context(1024), modeltest.DType(tensor.Q8_0)},
		"latent": {modeltest.Context(1024), modeltest.Latent(), modeltest.DType(tensor.Q8_0)}, "latent, window": {modeltest.Context(1024), modeltest.Latent(), modeltest.Window(40)},
	} {
		t.Run(name, func(t *testing.T) {
			g := realizar.Generation{MaxTokens: new(40), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1, Seed: 9}}
			// alone returns the answer of a model with an empty cache.
			alone := func(prompt []int32) []int32 {
				return generate(t, open(t, realizar.Options{}, options...), realizar.Request{PromptTokens: prompt, Generation: g}).tokens
			}
			m := open(t, realizar.Options{}, options...)
			ask := func(prompt []int32, salt string, cached int) []int32 {
				t.Helper()
				g := g
				g.Salt = salt
				a := generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g})
				if a.finish.Usage.CachedTokens != cached || a.finish.Usage.PromptTokens != len(prompt) {
					t.Errorf("%d tokens of %d were cached, want %d of %d", a.finish.Usage.CachedTokens, a.finish.Usage.PromptTokens, cached, len(prompt))
				}
				if want := alone(prompt); !slices.Equal(a.tokens, want) {
					t.Errorf("with %d tokens cached it answers %v, want %v", cached, a.tokens, want)
				}
				return a.tokens
			}
			prompt := ids(100)
			first := ask(prompt, "", 0)
			ask(prompt, "", 96)
			ask(prompt[:64], "", 32) // the last token always runs, for its logits
			ask(slices.Concat(prompt, first, ids(30)), "", 128)
			ask(slices.Concat(prompt[:50], prompt), "", 32)
			ask(prompt, "another", 0)
			ask(prompt, "another", 96)
		})
	}
}

// Answers that share a cache with room for one of them equal those that run alone, with and without
// a host cache.
func TestSmallCache(t *testing.T) {
	t.Run("plain", func(t *testing.T) { smallCache(t) })
	t.Run("latent", func(t *testing.T) { smallCache(t, modeltest.Latent()) })
}

func smallCache(t *testing.T, options ...modeltest.Option) {
	const context = 256
	options = append(options, modeltest.Context(context))
	path := modeltest.Llama(t, options...)
	const parallel = 6
	memory, err := describe(t, path).Memory(realizar.Options{Parallel: parallel, Memory: 1}) // of one answer
	if err != nil {
		t.Fatal(err)
	}
	one := memory.Resident + memory.Scratch + memory.States[0].Bytes
	request := func(i int) *realizar.Request {
		return &realizar.Request{PromptTokens: ids(20 + 15*(i%7)), Generation: realizar.Generation{
			MaxTokens: new(40 + 10*(i%5)), IgnoreEnd: true, Choices: 1 + i%3, Priority: i % 2, Salt: fmt.Sprint(i % 4),
			Sampling: realizar.Sampling{Temperature: 1, Seed: uint64(i), FrequencyPenalty: 0.5},
		}}
	}
	const requests = 12
	var want [requests][]answer
	wide := open(t, realizar.Options{Parallel: 8}, options...)
	for i := range want {
		want[i] = generateAll(t, wide, *request(i))
	}
	for _, host := range []int64{0, 1 << 16, 1 << 20} {
		m, err := realizar.Open(t.Context(), path, realizar.Options{Parallel: parallel, Memory: one, HostCache: host})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range want {
			all.Go(func() {
				got, err := collectAll(m.Generate(t.Context(), request(i)), len(want[i]))
				if err != nil {
					t.Error(err)
					return
				}
				for c := range got {
					if !slices.Equal(got[c].tokens, want[i][c].tokens) {
						t.Errorf("answer %d of request %d is another one in a small cache", c, i)
					}
				}
			})
		}
		all.Wait()
		s := m.Metrics()
		if s.Pools[0].Pages != context/32 || s.Preemptions == 0 || s.Evictions == 0 || (s.Saves > 0) != (host > 0) || host == 1<<20 && s.Restores == 0 {
			t.Errorf("%d bytes of the host: %d preemptions, %d evictions, %d pages saved, %d restored of %+v", host, s.Preemptions, s.Evictions, s.Saves, s.Restores, s.Pools)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestParseCache(t *testing.T) {
	for _, c := range []realizar.Cache{realizar.CacheAuto, realizar.CacheF32, realizar.CacheF16, realizar.CacheQ8, realizar.CacheF8} {
		if got, err := realizar.ParseCache(c.String()); got != c || err != nil {
			t.Errorf("%v is read as %v, %v", c, got, err)
		}
	}
	if got, err := realizar.ParseCache("q9"); err == nil {
		t.Errorf("q9 is %v", got)
	}
}

// Every cache format works, and caches with the same number format give the same answer.
func TestCaches(t *testing.T) {
	prompt := ids(70)
	answer := func(o realizar.Options) []int32 {
		return generate(t, open(t, o, modeltest.HeadDim(32)), realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{MaxTokens: new(8), IgnoreEnd: true}}).tokens
	}
	for _, same := range [][2]realizar.Options{
		{{}, {Cache: realizar.CacheF16}},
		{{Activations: realizar.ActivationsF32}, {Activations: realizar.ActivationsF32, Cache: realizar.CacheF32}},
	} {
		if a, b := answer(same[0]), answer(same[1]); !slices.Equal(a, b) {
			t.Errorf("%+v answers %v, %+v %v", same[0], a, same[1], b)
		}
	}
	for _, c := range []realizar.Cache{realizar.CacheQ8, realizar.CacheF8} {
		if a := answer(realizar.Options{Cache: c}); len(a) != 8 {
			t.Errorf("a %v cache answers %v", c, a)
		}
	}
}
