package engine_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

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

// A proposing is a proposer that is a function.
type proposing func(tokens []int32, n int) []int32

func (p proposing) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	return p(tokens, n), 0
}

func (proposing) End([]int32) {}

// A step that ends before the masks of its draft are known is void. They are then no masks of the
// next step's draft, even if Ahead returns only when that is in flight.
func TestLateAhead(t *testing.T) {
	begun, released := false, (chan struct{})(nil)
	drafts := engine.Drafts{Always: true, New: func(*engine.Request, int) engine.Proposer {
		return proposing(func(_ []int32, n int) []int32 {
			if !begun {
				return []int32{5, 6}[:min(n, 2)]
			}
			select {
			case <-released:
			default:
				close(released)
			}
			return []int32{0, 7}[:min(n, 2)]
		})
	}}
	after := func(id int32) uint32 { return 1 | 2<<id } // the tokens that may follow one
	scripting(t, engine.Config{Context: 100, Parallel: 1, Drafts: drafts}, &hashModel{windows: []int{0}}, func(s *script) {
		released = make(chan struct{})
		rule := masking(func(_ int, chosen []int32, mask []uint32) error {
			if mask[0] = 1; len(chosen) > 0 {
				mask[0] = after(chosen[len(chosen)-1])
			}
			return nil
		})
		c := s.ask(1, 9, func(r *engine.Request) {
			r.Constrain = func(choice int) engine.Constraint {
				return farMasked{&masked{f: rule, choice: choice}, func(choice int, chosen []int32, mask []uint32) error {
					if !begun {
						begun = true
						<-released
					}
					return rule(choice, chosen, mask)
				}}
			}
		}, nil)
		s.until(c, 30)
		if s.done(c, 9); c.stats.Preemptions != 1 {
			t.Errorf("%d preemptions for want of masks, want 1", c.stats.Preemptions)
		}
		if len(s.b.masks) < 4 {
			t.Fatalf("%d steps, want 4 or more", len(s.b.masks))
		}
		for i, step := range s.b.steps {
			if i > 2 && step[1].rows == 3 && s.b.masks[i][1] != after(7) {
				t.Errorf("step %d: the last row samples with mask %#x, want %#x", i, s.b.masks[i][1], after(7))
			}
		}
	})
}
