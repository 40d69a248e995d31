package realizar_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// A model without attention is planned, loaded and run like others. Its answers do not depend on
// the other requests of a batch, and continue from checkpoints of its states.
func TestWithoutAttention(t *testing.T) {
	for name, second := range map[string]bool{"mamba": false, "mamba2": true} {
		t.Run(name, func(t *testing.T) { withoutAttention(t, second) })
	}
}

func withoutAttention(t *testing.T, second bool) {
	const context = 1 << 20 // as converters write it
	path := modeltest.Mamba(t, second, modeltest.Context(context))
	load := func(o realizar.Options) *realizar.Model {
		t.Helper()
		m, err := realizar.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	memory, err := describe(t, path).Memory(realizar.Options{Parallel: 1})
	if err != nil || len(memory.States) == 0 {
		t.Fatalf("memory %+v: %v", memory, err)
	}
	g := realizar.Generation{MaxTokens: new(20), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1, Seed: 9}}
	ask := func(m *realizar.Model, prompt []int32) answer {
		return generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g})
	}
	prompts := [][]int32{ids(700), ids(1), slices.Concat(ids(600), ids(40)), ids(300)}
	var alone [][]int32
	for _, p := range prompts {
		alone = append(alone, ask(load(realizar.Options{}), p).tokens)
	}
	m := load(realizar.Options{Parallel: 4})
	var wait sync.WaitGroup
	for i, p := range prompts {
		wait.Go(func() {
			if got := ask(m, p).tokens; !slices.Equal(got, alone[i]) {
				t.Errorf("beside others prompt %d is answered by %v, alone by %v", i, got, alone[i])
			}
		})
	}
	wait.Wait()
	// Running together they have few slots for checkpoints, and which of them last depends on their
	// order. One that runs alone has the slots of all.
	for i, least := range []int{512, 0, 512, 0} {
		for _, again := range []bool{false, true} {
			a := ask(m, prompts[i])
			if n := a.finish.Usage.CachedTokens; again && n < least || n%32 != 0 {
				t.Errorf("%d tokens of prompt %d are cached, want %d or more", n, i, least)
			}
			if !slices.Equal(a.tokens, alone[i]) {
				t.Errorf("again, prompt %d is answered by %v, alone by %v", i, a.tokens, alone[i])
			}
		}
	}
}
