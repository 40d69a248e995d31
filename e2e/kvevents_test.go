package e2e_test

import (
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/llm-d/llm-d-kv-cache/pkg/kvcache/kvblock"
	"github.com/llm-d/llm-d-kv-cache/pkg/kvevents"
	"github.com/llm-d/llm-d-kv-cache/pkg/kvevents/engineadapter"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

// A router is the index of llm-d's router of what servers have cached, fed by a server's events.
type router struct {
	t     *testing.T
	index kvblock.Index
	keys  kvblock.TokenProcessor
	model string
}

const blockTokens = 32

// newRouter returns an index that subscribes to a server's events.
func newRouter(t *testing.T, endpoint, model string) *router {
	t.Helper()
	index, err := kvblock.NewInMemoryIndex(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kvblock.NewChunkedTokenDatabase(&kvblock.TokenProcessorConfig{BlockSizeTokens: blockTokens})
	if err != nil {
		t.Fatal(err)
	}
	events := kvevents.NewPool(&kvevents.Config{TopicFilter: "kv@", Concurrency: 1}, index, keys, engineadapter.NewVLLMAdapter())
	events.Start(t.Context())
	subscribers := kvevents.NewSubscriberManager(events)
	if err := subscribers.EnsureSubscriber(t.Context(), model, endpoint, "kv@", true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		subscribers.Shutdown(t.Context())
		events.Shutdown(t.Context())
	})
	return &router{t, index, keys, model}
}

// cached returns how many of the first tokens of a prompt the index holds for the server, in whole
// blocks.
func (r *router) cached(server string, prompt []int64) int {
	r.t.Helper()
	ids := make([]uint32, len(prompt))
	for i, id := range prompt {
		ids[i] = uint32(id)
	}
	keys, err := r.keys.TokensToKVBlockKeys(kvblock.EmptyBlockHash, ids, r.model, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(keys) == 0 {
		return 0
	}
	found, err := r.index.Lookup(r.t.Context(), keys, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, key := range keys {
		has := false
		for _, pod := range found[key] {
			has = has || pod.PodIdentifier == server
		}
		if !has {
			return i * blockTokens
		}
	}
	return len(keys) * blockTokens
}

// The index that llm-d's library builds from a server's events says of each prompt what the server
// then finds in its cache, while pages are evicted, moved to host memory and restored; and so does
// the index of a router that comes late.
func TestRouterKnowsTheCache(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "tcp://" + l.Addr().String()
	_ = l.Close()
	s := serveDemo(t, "--parallel", "2", "--kv-host", "64KiB", "--kv-events", endpoint)
	pod := strings.TrimPrefix(s.url, "http://")
	r := newRouter(t, endpoint, demo)
	rng := rand.New(rand.NewPCG(1, 1))
	var past [][]int64
	hits, misses := 0, 0
	for i := range 150 {
		var prompt []int64
		if len(past) > 0 && rng.IntN(4) > 0 {
			before := past[max(0, len(past)-1-rng.IntN(20))]
			prompt = append(prompt, before[:rng.IntN(len(before)+1)]...)
		}
		for n := 1 + rng.IntN(300); n > 0 && len(prompt) < 900; n-- {
			prompt = append(prompt, 300+rng.Int64N(1000))
		}
		past = append(past, prompt)
		if i == 100 { // another router
			r = newRouter(t, endpoint, demo)
			r.await(pod, past[i-1])
		}
		want := min(r.cached(pod, prompt), (len(prompt)-1)/blockTokens*blockTokens)
		answer, err := s.client().Completions.New(t.Context(), openai.CompletionNewParams{
			Model: demo, Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: prompt}, MaxTokens: param.NewOpt(int64(1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := int(answer.Usage.PromptTokensDetails.CachedTokens); got != want {
			t.Errorf("request %d of %d tokens: the router expects %d cached tokens, the server finds %d", i, len(prompt), want, got)
		}
		if want > 0 {
			hits++
		}
		r.await(pod, prompt)
	}
	for _, prompt := range past {
		if r.cached(pod, prompt) == 0 && len(prompt) >= blockTokens {
			misses++
		}
	}
	if hits < 20 || misses < 20 {
		t.Errorf("%d prompts were cached in part, and the beginnings of %d were evicted; want 20 and more of each", hits, misses)
	}
}

// await waits until the index has all blocks of a prompt that the server has run. Events are in
// order, so it then has all events before.
func (r *router) await(server string, prompt []int64) {
	r.t.Helper()
	end := time.Now().Add(time.Minute)
	for r.cached(server, prompt) < len(prompt)/blockTokens*blockTokens {
		if time.Now().After(end) {
			r.t.Fatalf("the index has %d of %d tokens of a prompt that was run a minute ago", r.cached(server, prompt), len(prompt))
		}
		time.Sleep(time.Millisecond)
	}
}
