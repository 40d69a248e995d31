package engine_test

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/realizar/realizar/internal/engine"
)

// A foreteller proposes the tokens that its answer will have, each of which is wrong with some
// probability, and any others after the answer's end.
type foreteller struct {
	want   *expected
	prompt int
	rng    *rand.Rand
	right  float64
	mu     sync.Mutex
	ended  bool
	ready  int // tokens for which it is prepared; -1: it needs no preparation
	broken func(format string, a ...any)
}

// propose makes the proposer of an answer to q.
func (r *trial) propose(q *engine.Request, _ int) engine.Proposer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foretellers++
	ready := -1
	if r.config.Drafts.Prepare != nil {
		ready = 0
	}
	return &foreteller{want: r.wanted[q], prompt: len(q.Prompt), rng: rand.New(rand.NewPCG(r.seed, r.foretellers)), right: r.right, broken: r.broken, ready: ready}
}

// prepare makes foretellers ready, most of the time.
func prepare(asks []engine.Ask) {
	for _, a := range asks {
		o := a.Proposer.(*foreteller)
		o.mu.Lock()
		if o.rng.IntN(8) > 0 {
			o.ready = len(a.Tokens)
		}
		o.mu.Unlock()
	}
}

func (o *foreteller) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended && o.ready < 0 {
		o.broken("a draft is asked for after the answer's end")
	}
	if o.ready >= 0 && o.ready != len(tokens) {
		return nil, 0
	}
	chosen := tokens[o.prompt:]
	var rest []int32
	for _, a := range o.want.answers {
		if len(a.tokens) >= len(chosen) && slices.Equal(a.tokens[:len(chosen)], chosen) {
			rest = a.tokens[len(chosen):]
		}
	}
	for i := range o.rng.IntN(n + 1) {
		if i < len(rest) && o.rng.Float64() < o.right {
			draft = append(draft, rest[i])
		} else {
			draft = append(draft, o.rng.Int32N(vocab))
		}
	}
	return draft, o.rng.IntN(5)
}

func (o *foreteller) End(tokens []int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		o.broken("an answer ends twice")
	}
	o.ended = true
}

// A farMasked is a constraint that allows drafts.
type farMasked struct {
	*masked
	ahead func(choice int, chosen []int32, mask []uint32) error
}

func (m farMasked) Ahead(draft []int32, force bool, masks [][]uint32) (n int, err error) {
	for n < len(draft) {
		if err := m.ahead(m.choice, slices.Concat(m.chosen, draft[:n+1]), masks[n]); err != nil {
			return n, err
		}
		if force && m.forces && only(masks[n]) >= 0 {
			return n, nil
		}
		n++
	}
	return n, nil
}

// ahead is the request's function after drafted tokens, which may be wrong.
func (a *asking) ahead(choice int, chosen []int32, mask []uint32) error {
	if mask[0]|mask[1] != 0 {
		a.broken("client %d: a mask of %x is asked for", a.who, mask)
	}
	open, err := a.rule(choice, len(chosen), chosen[len(chosen)-1])
	mask[0], mask[1] = uint32(open), uint32(open>>32)
	return err
}
