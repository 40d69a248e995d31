package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A followed is an answer that a follower follows.
type followed struct {
	request  *engine.Request
	choice   int
	follower *engine.Follower
	tokens   []int32
	damaged  bool // the model cannot compute all of its positions
}

// draft returns the n tokens that the model samples after those of f, and whether it can compute
// them.
func (f *followed) draft(m *hashModel, n int) (draft []int32, ok bool) {
	r := newReader(m, len(f.request.Prompt))
	for _, id := range f.tokens {
		r.read(id)
	}
	p := f.request.Sampling
	p.Choice += uint32(f.choice)
	var known adjusted
	for _, id := range f.tokens[len(f.request.Prompt):] {
		known[id].count++
	}
	for range n {
		id, _, _ := choose(r.out, &p, nil, &known)
		draft = append(draft, id)
		known[id].count++
		if len(draft) < n {
			r.read(id)
		}
	}
	return draft, !r.damaged
}

// Followers sample what the model samples after the known tokens, whatever they sampled before,
// however many they are, and while others take their pages.
func TestFollowers(t *testing.T) {
	for i := range longtest.Cases(3000, 100) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { testFollowers(t, uint64(i)) })
	}
}

func testFollowers(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	m := &hashModel{windows: [][]int{{0}, {40, 0}, {recurrent, 0}, {delta}, {recurrent}, {delta, recurrent, 33}, {chunked(64), 0}}[rng.IntN(7)]}
	const context = 300
	parallel := 1 + rng.IntN(5)
	c := engine.Config{Context: context, Parallel: parallel, Follows: true, Cache: tensor.F32, States: 1}
	if rng.IntN(2) == 0 {
		c.States = 0
	}
	f := &fake{model: m, broken: t.Errorf, pause: func(int, <-chan struct{}) {}, rng: rand.New(rand.NewPCG(seed, 7))}
	var e *engine.Engine
	var open sync.Mutex
	f.verify = func() error {
		open.Lock()
		defer open.Unlock()
		return e.Check()
	}
	open.Lock()
	e, err := engine.New(t.Context(), m.program(), f, c, nil)
	open.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all []*followed
	begin := func() *followed {
		q := &engine.Request{
			Prompt: ids(rng, 1+rng.IntN(150)), Salt: fmt.Sprint(rng.IntN(2)), Sampling: sample.Params{Temperature: 1, Seed: rng.Uint64(), Frequency: float32(rng.IntN(2))},
		}
		if len(all) > 0 && rng.IntN(2) == 0 && len(all[0].tokens) < context {
			q.Prompt = slices.Clone(all[0].tokens)
		}
		choice := rng.IntN(3)
		follower, err := e.Follow(q, choice)
		if err != nil {
			t.Fatal(err)
		}
		return &followed{request: q, choice: choice, follower: follower, tokens: slices.Clone(q.Prompt)}
	}
	for range 1 + rng.IntN(parallel+2) {
		all = append(all, begin())
	}
	drafted, asked := 0, 0
	for range 60 {
		var aheads []engine.Ahead
		var of []*followed
		for _, f := range all {
			if rng.IntN(4) == 0 {
				continue
			}
			aheads, of = append(aheads, engine.Ahead{Follower: f.follower, Tokens: slices.Clip(f.tokens), N: 1 + rng.IntN(6)}), append(of, f)
		}
		for wait := rng.IntN(8) > 0; wait && !e.Rests(); {
			runtime.Gosched()
		}
		e.Draft(aheads)
		for i, a := range aheads {
			f := of[i]
			want, ok := f.draft(m, len(a.Draft))
			f.damaged = f.damaged || !ok
			switch asked++; {
			case f.damaged:
			case !slices.Equal(a.Draft, want) || len(a.Draft) > a.N:
				t.Fatalf("after %d tokens %v are sampled, want %v of %d", len(a.Tokens), a.Draft, want, a.N)
			case len(a.Draft) > 0:
				drafted++
			}
			n := rng.IntN(len(a.Draft) + 1)
			f.tokens = append(f.tokens, a.Draft[:n]...)
			for range rng.IntN(3) {
				f.tokens = append(f.tokens, rng.Int32N(vocab))
			}
			if rng.IntN(20) == 0 {
				f.tokens = append(f.tokens, ids(rng, rng.IntN(90))...)
			}
		}
		for i, f := range all {
			if len(f.tokens) > context+8 || f.damaged || rng.IntN(50) == 0 {
				f.follower.End()
				all[i] = begin()
			}
		}
	}
	if drafted == 0 {
		t.Errorf("of %d drafts none has a token", asked)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
