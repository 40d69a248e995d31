package realizar_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar"
)

// A request with a higher priority preempts the only running answer, even from within the loop over
// that answer, which then continues unchanged.
func TestPriority(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 1})
	low := realizar.Request{PromptTokens: ids(50), Generation: realizar.Generation{MaxTokens: new(60), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1}}}
	high := realizar.Request{PromptTokens: ids(40), Generation: realizar.Generation{MaxTokens: new(5), IgnoreEnd: true, Priority: 1}}
	want := generate(t, m, low)
	// Without priority the request would wait forever.
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var got answer
	for e, err := range m.Generate(ctx, &low) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got.pieces) == 0 {
			if a, err := collect(m.Generate(ctx, &high)); err != nil || len(a.tokens) != 5 {
				t.Fatalf("one of a higher priority has %d tokens, %v", len(a.tokens), err)
			}
			if _, err := m.Embed(ctx, &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Text: "hello"}}, Priority: 1}); err != nil {
				t.Fatal(err)
			}
		}
		got.add(e)
	}
	if !slices.Equal(got.tokens, want.tokens) {
		t.Errorf("an answer that made room is %v, want %v", got.tokens, want.tokens)
	}
}

// Embeddings reuse cached pages of requests with the same salt.
func TestEmbedSalt(t *testing.T) {
	m := open(t, realizar.Options{})
	for _, test := range []struct {
		salt string
		hits uint64
	}{{"a", 0}, {"b", 0}, {"a", 64}, {"", 0}} {
		before := m.Metrics().CacheHits
		if _, err := m.Embed(t.Context(), &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Tokens: ids(70)}}, Salt: test.salt}); err != nil {
			t.Fatal(err)
		}
		if hits := m.Metrics().CacheHits - before; hits != test.hits {
			t.Errorf("salt %q: %d tokens were found, want %d", test.salt, hits, test.hits)
		}
	}
}
