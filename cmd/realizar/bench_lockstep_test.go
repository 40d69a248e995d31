package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// TestLockstepTokens checks that sequences that run side by side, and run again, get the tokens
// that each gets alone.
func TestLockstepTokens(t *testing.T) {
	plain := modeltest.Llama(t, modeltest.DType(tensor.Q8_0), modeltest.Context(1024))
	window := modeltest.Llama(t, modeltest.Context(1024), modeltest.Window(40))
	wide := modeltest.Llama(t, modeltest.Context(1024), modeltest.HeadDim(32))
	for _, test := range []struct {
		name, model string
		activations realizar.Activations
		cache       realizar.Cache
		shape       batchShape
	}{
		{"one", plain, realizar.ActivationsAuto, realizar.CacheAuto, batchShape{1, 5, 9}},
		{"one token", plain, realizar.ActivationsAuto, realizar.CacheAuto, batchShape{3, 1, 1}},
		{"many", plain, realizar.ActivationsAuto, realizar.CacheAuto, batchShape{9, 70, 20}},
		{"float32", plain, realizar.ActivationsF32, realizar.CacheAuto, batchShape{4, 33, 31}},
		{"long prompt", plain, realizar.ActivationsAuto, realizar.CacheAuto, batchShape{2, 600, 40}},
		{"more than a chunk", plain, realizar.ActivationsAuto, realizar.CacheAuto, batchShape{300, 2, 2}},
		{"float32 in a float16 cache", plain, realizar.ActivationsF32, realizar.CacheF16, batchShape{2, 33, 31}},
		{"q8 cache", wide, realizar.ActivationsAuto, realizar.CacheQ8, batchShape{3, 70, 20}},
		{"f8 cache", wide, realizar.ActivationsAuto, realizar.CacheF8, batchShape{3, 70, 20}},
		{"window", window, realizar.ActivationsAuto, realizar.CacheAuto, batchShape{3, 500, 400}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := realizar.Options{Threads: 2, Activations: test.activations, Cache: test.cache}
			m, err := realizar.Open(t.Context(), test.model, o)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			var prompts, want [][]int32
			limit := test.shape.answer + 1
			for s := range test.shape.seqs {
				prompts = append(prompts, randomTokens(s, test.shape.depth, m.Vocab()))
				request := &realizar.Request{PromptTokens: prompts[s], Generation: realizar.Generation{MaxTokens: &limit, IgnoreEnd: true}}
				var ids []int32
				for e, err := range m.Generate(t.Context(), request) {
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, e.Tokens...)
				}
				want = append(want, ids)
			}

			batch, err := openLockstep(test.model, "", o)
			if err != nil {
				t.Fatal(err)
			}
			defer batch.close() //nolint:errcheck // the file is only read
			l, err := batch.start(t.Context(), test.shape)
			if err != nil {
				t.Fatal(err)
			}
			defer l.close() //nolint:errcheck // its steps have been waited for
			for _, ids := range prompts {
				if err := l.prompt(t.Context(), ids); err != nil {
					t.Fatal(err)
				}
			}
			for run := range 2 {
				got := make([][]int32, test.shape.seqs)
				for s, id := range l.first {
					got[s] = append(got[s], id)
				}
				_, err := l.choose(t.Context(), func(ids []int32) {
					for s, id := range ids {
						got[s] = append(got[s], id)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				for s := range want {
					if !slices.Equal(got[s], want[s]) {
						t.Errorf("run %d: sequence %d chose %v, alone %v", run, s, got[s], want[s])
					}
				}
			}
		})
	}
}

// TestLockstepNotFinite checks that a model with values that are not finite is an error and has no
// speed.
func TestLockstepNotFinite(t *testing.T) {
	m, err := openLockstep(modeltest.Llama(t, modeltest.Overflow("blk.1.ffn_down.weight")), "", realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close() //nolint:errcheck // the file is only read
	l, err := m.start(t.Context(), batchShape{2, 4, 4})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close() //nolint:errcheck // its steps have been waited for
	if err := l.prompt(t.Context(), []int32{1, 2, 3, 4}); err == nil || !strings.Contains(err.Error(), "finite") {
		t.Errorf("a prompt of a broken model: %v", err)
	}
}

// TestLockstepPages checks that the pages of a window do not grow with the context.
func TestLockstepPages(t *testing.T) {
	m, err := openLockstep(modeltest.Llama(t, modeltest.Context(8192), modeltest.Window(40)), "", realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.close() //nolint:errcheck // the file is only read
	l, err := m.limits(batchShape{seqs: 4, depth: 8000, answer: 100})
	if err != nil {
		t.Fatal(err)
	}
	if most := 4 * 11; len(l.Pages) != 1 || l.Pages[0] > most {
		t.Errorf("a window of 40 keeps %v pages of %d tokens, want at most %d", l.Pages, l.PageTokens, most)
	}
}

// TestLockstepSlots checks that a step reads a sequence's state from one slot and writes it to
// another, if it is taken again, and that the state after the prompt is kept for the answers.
func TestLockstepSlots(t *testing.T) {
	for _, g := range []plan.Group{{Kind: plan.PerSequence}, {Kind: plan.PerSequence, Every: 64}} {
		for _, depth := range []int{1, 256, 300, 340, 1000} {
			s := batchShape{seqs: 1, depth: depth, answer: 200}
			last := -1
			for from, end := 0, min(chunkTokens, depth); end <= depth+s.answer; {
				if g.Taken(end) > g.Taken(from) {
					slot := s.slot(g, end)
					if slot < 0 || slot >= lockstepSlots || slot == last || g.Taken(end) > g.Taken(depth) && g.Taken(depth) > 0 && slot == s.slot(g, depth) {
						t.Errorf("%+v, depth %d: slot %d after %d tokens, %d before them", g, depth, slot, end, last)
					}
					last = slot
				}
				if g.Taken(from) > 0 && from > 0 && g.Taken(end) == g.Taken(from) && s.slot(g, from) != last {
					t.Errorf("%+v, depth %d: slot %d is read after %d tokens, %d was written", g, depth, s.slot(g, from), from, last)
				}
				if from = end; end < depth {
					end = min(end+chunkTokens, depth)
				} else {
					end++
				}
			}
		}
	}
}
