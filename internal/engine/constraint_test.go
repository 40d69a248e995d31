package engine_test

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// A masking returns the tokens that may follow an answer's tokens.
type masking func(choice int, chosen []int32, mask []uint32) error

// by constrains every answer of a request by f.
func (f masking) by(choice int) engine.Constraint { return &masked{f: f, choice: choice} }

// A masked is a constraint that calls a function.
type masked struct {
	f      masking
	choice int
	chosen []int32
	forces bool // tokens without alternative are forced
}

func (m *masked) Next(chosen []int32, force bool, mask []uint32) (forced []int32, err error) {
	m.chosen = append(m.chosen, chosen...)
	for {
		clear(mask)
		if err := m.f(m.choice, m.chosen, mask); err != nil {
			return forced, err
		}
		id := only(mask)
		if !force || !m.forces || id < 0 || len(forced) == 20 {
			return forced, nil
		}
		forced, m.chosen = append(forced, id), append(m.chosen, id)
	}
}

// only returns the only token that a mask allows, or -1.
func only(mask []uint32) int32 {
	id := int32(-1)
	for i, word := range mask {
		if word == 0 {
			continue
		}
		if id >= 0 || word&(word-1) != 0 {
			return -1
		}
		id = int32(32*i + bits.TrailingZeros32(word))
	}
	return id
}

// A slow constraint delays others once, and no longer than maskPatience. Then steps run without its
// sequence until its masks are fast again.
func TestSlowConstraint(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		rule := masking(func(_ int, chosen []int32, mask []uint32) error {
			if len(chosen) > 0 {
				time.Sleep(3 * stepTime)
			}
			mask[0] = 1
			return nil
		})
		slow := s.ask(1, 6, func(r *engine.Request) { r.Constrain = rule.by }, nil)
		other := s.ask(2, 30, nil, nil)
		at := time.Now()
		s.until(other, 32)
		s.done(other, 30)
		if took := time.Since(at); took > 32*stepTime {
			t.Errorf("30 tokens beside a slow constraint took %v, a step takes %v", took, stepTime)
		}
		s.until(slow, 30)
		if s.done(slow, 6); slow.stats.Preemptions != 1 {
			t.Errorf("%d preemptions for want of masks, want 1", slow.stats.Preemptions)
		}
	})
}

// Forced tokens take no steps of their own.
func TestForcedTokens(t *testing.T) {
	for _, test := range []struct {
		what                string
		want                plan.Want
		tokens, stop, steps int
		answer              []int32
	}{
		// The device samples 0 if allowed; 1 to 6 are forced after the first token.
		{"forced", 0, 10, -1, 4, []int32{0, 1, 2, 3, 4, 5, 6, 0, 0, 0}},
		{"the answer's last token is one of them", 0, 5, -1, 1, []int32{0, 1, 2, 3, 4}},
		{"one of them ends the answer", 0, 10, 4, 1, []int32{0, 1, 2, 3, 4}},
		{"something is wanted of each", plan.WantLogProbability, 10, -1, 10, []int32{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(test.what, func(t *testing.T) {
			scripting(t, engine.Config{Context: 100, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
				rule := masking(func(_ int, chosen []int32, mask []uint32) error {
					if mask[0] = ^uint32(0); len(chosen) > 0 && len(chosen) <= 6 {
						mask[0] = 1 << len(chosen)
					}
					return nil
				})
				var answer []int32
				c := s.ask(1, test.tokens, func(r *engine.Request) {
					r.Constrain = func(choice int) engine.Constraint { return &masked{f: rule, forces: true} }
					r.Want, r.Stop = test.want, []int32{int32(test.stop)}
				}, func(got *engine.Result) bool {
					answer = append(append(answer, got.Forced...), got.Token)
					return true
				})
				s.until(c, 20)
				if c.err != nil || !slices.Equal(answer, test.answer) || len(s.b.steps) > test.steps+1 {
					t.Errorf("%d steps for %v (%v), want %d, or 1 more that was under way, for %v", len(s.b.steps), answer, c.err, test.steps, test.answer)
				}
			})
		})
	}
}
