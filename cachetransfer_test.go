package realizar_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/kvtransfer"
	"github.com/realizar/realizar/internal/modeltest"
)

// peer returns a peer on the loopback interface.
func peer(t *testing.T) *kvtransfer.Peer {
	t.Helper()
	l, err := kvtransfer.Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := kvtransfer.New(l, kvtransfer.Config{Key: make([]byte, 32), Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// transfer moves the pages of a prompt from one model to another over the peers, and returns the
// tokens that they hold.
func transfer(ctx context.Context, from, to *realizar.Model, sender, receiver *kvtransfer.Peer, prompt []int32, salt string) (int, error) {
	x, err := from.ExportCache(ctx, prompt, salt)
	if err != nil {
		return 0, err
	}
	o, err := sender.Offer(x, from.CacheName(prompt, salt, x.Tokens()), x.Tokens())
	if err != nil {
		return 0, err
	}
	name := kvtransfer.Name(to.CacheName(prompt, salt, o.Tokens))
	return o.Tokens, to.ImportCache(ctx, prompt, salt, o.Tokens, func(ctx context.Context, skip int, pages [][]byte) error {
		return receiver.Fetch(ctx, o, name, skip, pages)
	})
}

// Prompts are run by one model and answered by another, which has their pages over the network.
// The answers to 504 random requests, tokens and log-probabilities, are those of a model that does
// both, to the bit.
func TestTransferredAnswers(t *testing.T) {
	models := map[string]string{
		"attention": modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32)),
		"window":    modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32), modeltest.Window(40)),
		"recurrent": modeltest.Mamba(t, true, modeltest.Context(512)),
	}
	sender, receiver := peer(t), peer(t)
	var found, exported atomic.Int64
	for name, path := range models {
		for _, cache := range []realizar.Cache{realizar.CacheF32, realizar.CacheF16, realizar.CacheQ8} {
			t.Run(name+" "+cache.String(), func(t *testing.T) {
				o := realizar.Options{Device: "cpu", Threads: 1, Parallel: 4, Context: 512, Cache: cache, HostCache: 32 << 20, TransferCache: true}
				open := func() *realizar.Model {
					m, err := realizar.Open(t.Context(), path, o)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = m.Close() })
					return m
				}
				whole, prefill, decode := open(), open(), open()
				if whole.CacheIdentity() == "" || prefill.CacheIdentity() != decode.CacheIdentity() {
					t.Error("the same models have other identities")
				}
				var working sync.WaitGroup
				for worker := range 2 {
					working.Go(func() {
						rng := rand.New(rand.NewPCG(uint64(len(name)), uint64(worker)))
						for i := range 28 {
							r := transferRequest(rng, i)
							first := r
							first.Generation = realizar.Generation{MaxTokens: new(1), Salt: r.Salt}
							_, err := collect(prefill.Generate(t.Context(), &first))
							var n int
							if err == nil {
								n, err = transfer(t.Context(), prefill, decode, sender, receiver, r.PromptTokens, r.Salt)
							}
							if err != nil {
								t.Errorf("request %d: %v", i, err)
							}
							got, err := collect(decode.Generate(t.Context(), &r))
							if err != nil {
								t.Errorf("request %d: %v", i, err)
								continue
							}
							want, err := collect(whole.Generate(t.Context(), &r))
							if err != nil || !reflect.DeepEqual(got.tokens, want.tokens) || !reflect.DeepEqual(got.logProbs, want.logProbs) {
								t.Errorf("request %d of %d tokens: %v, want %v (%v)", i, len(r.PromptTokens), got.tokens, want.tokens, err)
							}
							exported.Add(int64(n))
							found.Add(int64(got.finish.Usage.CachedTokens))
						}
					})
				}
				working.Wait()
				for name, m := range map[string]*realizar.Model{"prefill": prefill, "decode": decode} {
					for _, p := range m.Metrics().Pools {
						if p.Used != 0 {
							t.Errorf("%s: %d pages are held", name, p.Used)
						}
					}
				}
			})
		}
	}
	if exported.Load() < 10_000 || found.Load() < 10_000 {
		t.Errorf("%d tokens were transferred, and %d found", exported.Load(), found.Load())
	}
	if s := sender.Stats(); s.Held != 0 || s.Sent.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// transferRequest returns a request of any kind.
func transferRequest(rng *rand.Rand, i int) realizar.Request {
	prompt := make([]int32, 1+rng.IntN(300))
	for k := range prompt {
		prompt[k] = rng.Int32N(250)
	}
	r := realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{MaxTokens: new(1 + rng.IntN(12)), IgnoreEnd: true, Salt: fmt.Sprint("salt", rng.IntN(2))}}
	if rng.IntN(2) == 0 {
		r.Sampling = realizar.Sampling{Temperature: 0.5 + rng.Float32(), Seed: uint64(i), TopK: rng.IntN(50), TopP: 0.5 + rng.Float32()/2}
	}
	if rng.IntN(3) == 0 {
		r.RepetitionPenalty, r.FrequencyPenalty, r.PresencePenalty = 1.2, 0.5, 0.3
	}
	if rng.IntN(2) == 0 {
		r.LogProbs = new(rng.IntN(5))
	}
	if rng.IntN(8) == 0 {
		r.PromptLogProbs = new(2)
	}
	return r
}

// Models that would compute other pages have other identities, and a name depends on all of a
// prompt's tokens and its salt.
func TestCacheNames(t *testing.T) {
	path := modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32))
	base := realizar.Options{Device: "cpu", HostCache: 1 << 20, TransferCache: true, Parallel: 1}
	identity := func(path string, change func(o *realizar.Options)) string {
		t.Helper()
		o := base
		change(&o)
		m, err := realizar.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return m.CacheIdentity()
	}
	none := func(*realizar.Options) {}
	own := identity(path, none)
	if again := identity(modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32)), func(o *realizar.Options) { o.Parallel = 3 }); again != own {
		t.Error("a copy of the file has another identity")
	}
	for what, other := range map[string]string{
		"weights":     identity(modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32), modeltest.Seed(9)), none),
		"metadata":    identity(modeltest.Llama(t, modeltest.Context(512), modeltest.HeadDim(32), modeltest.Metadata("llama.rope.freq_base", float32(5000))), none),
		"cache":       identity(path, func(o *realizar.Options) { o.Cache = realizar.CacheQ8 }),
		"activations": identity(path, func(o *realizar.Options) { o.Activations = realizar.ActivationsF32; o.Cache = realizar.CacheF16 }),
	} {
		if other == own {
			t.Errorf("another %s has the same identity", what)
		}
	}
	m, err := realizar.Open(t.Context(), path, base)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompt := ids(100)
	name := m.CacheName(prompt, "a", 64)
	changed := ids(100)
	changed[63]++
	late := ids(100)
	late[64]++
	if m.CacheName(late, "a", 64) != name {
		t.Error("a name depends on tokens that the pages do not have")
	}
	for what, other := range map[string][32]byte{"token": m.CacheName(changed, "a", 64), "salt": m.CacheName(prompt, "b", 64), "length": m.CacheName(prompt, "a", 96)} {
		if other == name {
			t.Errorf("another %s has the same name", what)
		}
	}
	plain := base
	plain.TransferCache = false
	if m, err = realizar.Open(t.Context(), path, plain); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = m.ExportCache(t.Context(), prompt, "")
	if !errors.Is(err, realizar.ErrOptions) || !errors.Is(m.ImportCache(t.Context(), prompt, "", 32, nil), realizar.ErrOptions) || m.CacheIdentity() != "" {
		t.Errorf("a model without TransferCache transfers: %v", err)
	}
	plain = base
	plain.HostCache = 0
	if _, err := realizar.Open(t.Context(), path, plain); !errors.Is(err, realizar.ErrOptions) {
		t.Errorf("without host memory: %v", err)
	}
}
