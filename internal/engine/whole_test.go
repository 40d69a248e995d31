package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// encoder returns a small program that reads sequences of up to context tokens as a whole, with two
// types of tokens.
func encoder(t *testing.T, context int) *plan.Program {
	t.Helper()
	const d = 32
	rng := rand.New(rand.NewPCG(5, 5))
	w := func(name string, shape ...int) *tensor.Tensor {
		return plantest.Weight(rng, name, tensor.F32, 0.5, shape...)
	}
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Add(b.Add(b.Embed(w("embed", modelVocab, d)), b.Position(w("types", 2, d), 1)), b.Position(w("position", context, d), 0))
		for i := range 2 {
			b.Layer(i)
			a := plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: d / 2, Scale: 0.25, Window: 9 * i}
			x = b.Add(x, b.Bidirectional(b.Linear(x, w("q", d, d), nil), b.Linear(x, w("k", d, d), nil), b.Linear(x, w("v", d, d), nil), a))
		}
		b.Layer(plan.NoLayer)
		x = b.Pick(x)
		b.Output(x, b.Linear(x, w("head", 3, d), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// whole returns a request for the hidden states of all tokens.
func whole(rng *rand.Rand, n int) *engine.Request {
	r := &engine.Request{Prompt: make([]int32, n)}
	for i := range r.Prompt {
		r.Prompt[i] = rng.Int32N(modelVocab)
		r.Outputs = append(r.Outputs, engine.Output{Token: int32(i), Want: plan.WantHidden})
	}
	if rng.IntN(2) == 0 {
		r.Types = make([]int32, n)
		for i := n / 2; i < n; i++ {
			r.Types[i] = 1
		}
	}
	return r
}

// states returns r's results.
func states(e *engine.Engine, r *engine.Request) (rows [][]float32, err error) {
	_, err = e.Run(context.Background(), r, func(got *engine.Result) (bool, error) {
		if got.Index != int(r.Outputs[len(rows)].Token) {
			return false, fmt.Errorf("output %d is of token %d", len(rows), got.Index)
		}
		rows = append(rows, slices.Clone(got.Hidden))
		return true, nil
	})
	return rows, err
}

// Many sequences of all lengths have the same bits as each alone, in a step of its own.
func TestWhole(t *testing.T) {
	const context = 300
	p := encoder(t, context)
	e := open(t, cpu.New(2), p, engine.Config{Context: context, Parallel: 5, Cache: tensor.F32})
	alone, err := cpu.New(1).Compile(t.Context(), p, plan.Limits{Tokens: context, Seqs: 1, Rows: context, PageTokens: 32, Cache: tensor.F32}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	rng := rand.New(rand.NewPCG(6, 6))
	var all sync.WaitGroup
	for _, n := range []int{1, 2, 299, 31, 32, 300, 33, 64, 255, 256, 257, 300, 300, 1, 7, 64} {
		r := whole(rng, n)
		if n == 64 {
			r.Prompt, r.Types = tokens(64, 3), nil // the same prompt again, with only the end wanted
			r.Outputs = r.Outputs[63:]
		}
		b := &plan.Batch{Tokens: r.Prompt, Start: []int32{0, int32(n)}, Lengths: []int32{int32(n)}}
		for i := range n {
			b.Positions = append(b.Positions, int32(i))
			b.Rows = append(b.Rows, plan.Row{Token: int32(i), Want: plan.WantHidden})
			if r.Types != nil {
				b.Axes = append(b.Axes, r.Types[i], 0)
			}
		}
		step, err := alone.Submit(b)
		if err != nil {
			t.Fatal(err)
		}
		res, err := step.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := res.Hidden[n-len(r.Outputs):]
		all.Go(func() {
			for range 3 {
				got, err := states(e, r)
				if err != nil {
					t.Error(err)
				} else if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%d tokens have other states than alone:\n%s", n, diff)
				}
			}
		})
	}
	all.Wait()
	if m := e.Metrics(); m.CacheHits > 0 || m.Preemptions > 0 {
		t.Errorf("%d tokens were found, %d answers preempted", m.CacheHits, m.Preemptions)
	}
}

// Sequences share steps as far as they fit. None is cut, and none is passed forever.
func TestWholeSteps(t *testing.T) {
	scripting(t, engine.Config{Context: 1500, Parallel: 4}, &hashModel{whole: true}, func(s *script) {
		outputs := func(n int) func(*engine.Request) {
			return func(r *engine.Request) {
				for i := range n {
					r.Outputs = append(r.Outputs, engine.Output{Token: int32(i), Want: plan.WantHidden})
				}
			}
		}
		// The first two steps have one sequence each; the others wait by then.
		first := s.ask(2, 0, outputs(2), nil)
		second := s.ask(1400, 0, nil, nil)
		callers := []*caller{first, second}
		// One token more is too many.
		for _, n := range []int{1, 1500, 100} {
			callers = append(callers, s.ask(n, 0, nil, nil))
		}
		for _, n := range []int{800, 900, 600} {
			callers = append(callers, s.ask(n, 0, outputs(n), nil))
		}
		for range 20 {
			if len(s.b.steps) > 0 && !slices.ContainsFunc(callers, func(c *caller) bool { return !c.over }) {
				break
			}
			s.next(nil)
		}
		for i, c := range callers {
			if !c.over || c.err != nil {
				t.Errorf("caller %d: over: %v, %v", i, c.over, c.err)
			}
		}
		seen := map[int32]bool{}
		shared := false
		for _, step := range s.b.steps {
			shared = shared || len(step) > 1
			for n, part := range step {
				if part.start != 0 || part.tokens != int(n) || seen[n] {
					t.Errorf("%d tokens are in a step from %d on with %d", n, part.start, part.tokens)
				}
				seen[n] = true
			}
		}
		if !shared || len(seen) != len(callers) {
			t.Errorf("of %d sequences %d had steps, shared: %v", len(callers), len(seen), shared)
		}
	})
}

// A request that does not fit is refused with numbers, before a step.
func TestWholeRefused(t *testing.T) {
	p := encoder(t, 64)
	e := open(t, cpu.New(2), p, engine.Config{Context: 64, Parallel: 1, Cache: tensor.F32})
	two := tokens(2, 1)
	for says, r := range map[string]*engine.Request{
		"65 tokens exceed the context of 64": {Prompt: tokens(65, 1)},
		"3 tokens cannot be chosen":          {Prompt: two, Tokens: 3},
		"2 tokens have 1 types":              {Prompt: two, Types: []int32{0}},
		"token type 2 at 1":                  {Prompt: two, Types: []int32{0, 2}},
		"token type -1 at 0":                 {Prompt: two, Types: []int32{-1, 0}},
	} {
		if _, err := e.Run(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
	decoder := open(t, cpu.New(2), plantest.Model(t, nil), engine.Config{Context: 64, Parallel: 1, Cache: tensor.F32})
	if _, err := decoder.Run(t.Context(), &engine.Request{Prompt: two, Types: []int32{0, 0}}, nil); err == nil {
		t.Error("a decoder takes types of tokens")
	}
}
