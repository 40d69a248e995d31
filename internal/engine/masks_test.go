package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// maskOf allows tokens by the first word, and those from 32 on.
func maskOf(word uint32) *engine.Mask { return &engine.Mask{Words: []uint32{word, ^uint32(0)}} }

// by constrains a request by a mask.
func by(m *engine.Mask) func(*engine.Request) { return func(r *engine.Request) { r.Allowed = m } }

// wants checks the masks of every step's parts.
func (s *script) wants(steps ...map[int32]uint32) {
	s.t.Helper()
	if got := s.b.masks; !slices.EqualFunc(got, steps, func(a, b map[int32]uint32) bool {
		if len(a) != len(b) {
			return false
		}
		for id, word := range a {
			if b[id] != word {
				return false
			}
		}
		return true
	}) {
		s.t.Errorf("masks %#x, want %#x", got, steps)
	}
	s.b.masks = nil
	if err := s.e.Check(); err != nil {
		s.t.Error(err)
	}
}

// Requests with the same mask share its entry, and the executable gets the mask once. An unused
// mask is found until its entry is needed. It does not change while a step in flight uses it.
func TestMasksAreShared(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		type step = map[int32]uint32
		one, two, three, four := maskOf(1), maskOf(2), maskOf(3), maskOf(4)
		a := s.ask(1, 50, by(one), nil)
		b := s.ask(2, 50, by(one), nil)
		s.steps(3)
		s.wants(step{1: 1}, step{1: 1}, step{1: 1, 2: 1}, step{1: 1, 2: 1}, step{1: 1, 2: 1})
		if !slices.Equal(s.b.sets, []int32{1}) {
			t.Errorf("one mask of two requests was set as %v", s.b.sets)
		}
		b.leave()
		c := s.ask(3, 50, by(two), nil)
		s.steps(2)
		s.wants(step{1: 1, 3: 2}, step{1: 1, 3: 2})
		a.leave()
		c.leave()
		s.steps(2)
		// No request has them now, and both are in the table.
		a, b = s.ask(4, 50, by(two), nil), s.ask(5, 2, by(one), nil)
		s.steps(4)
		s.done(b, 2)
		s.wants(step{4: 2}, step{4: 2}, step{4: 2, 5: 1}, step{4: 2, 5: 1}, step{4: 2}, step{4: 2})
		if !slices.Equal(s.b.sets, []int32{1, 2}) {
			t.Errorf("two masks were set as %v", s.b.sets)
		}
		// There are four entries: the third and fourth masks take the free ones, and the next takes
		// that of the first mask.
		for i, m := range []*engine.Mask{three, four, maskOf(5)} {
			s.until(s.ask(6+i, 1, by(m), nil), 10)
		}
		s.until(s.ask(9, 1, by(one), nil), 10)
		if !slices.Equal(s.b.sets, []int32{1, 2, 3, 4, 1, 3}) {
			t.Errorf("masks were set as %v", s.b.sets)
		}
		a.leave()
		s.steps(2)
	})
}

// However many masks there are, each request samples with its own.
func TestManyMasks(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 3}, &hashModel{windows: []int{0}}, func(s *script) {
		const n = 40
		var all []*caller
		for i := range n {
			all = append(all, s.ask(1+i, 1+i%7, by(maskOf(uint32(1+i))), nil))
			if i%5 == 4 {
				all[i-1].leave()
			}
		}
		for i, c := range all {
			s.until(c, 200)
			if i%5 != 3 {
				s.done(c, 1+i%7)
			} else if !errors.Is(c.err, context.Canceled) {
				t.Errorf("request %d: %v", i, c.err)
			}
		}
		for i, step := range s.b.masks {
			for prompt, word := range step {
				if word != uint32(prompt) {
					t.Errorf("step %d: a request has mask %d, want %d", i, word, prompt)
				}
			}
		}
		if most := slices.Max(s.b.sets); most > 2*3 || len(s.b.sets) < n-n/5 {
			t.Errorf("%d requests of unlike masks have set %v", n, s.b.sets)
		}
	})
}

// Tokens that are forbidden, always or for now, become a mask: the answer's steps are still made
// ahead, and no bias remains.
func TestBansAreMasks(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		type step = map[int32]uint32
		adjusted := 0
		s.b.look = func(b *plan.Batch) {
			for _, r := range b.Rows {
				adjusted += len(r.Adjustments)
			}
		}
		c := s.ask(1, 5, func(r *engine.Request) {
			r.Allowed, r.MinTokens, r.Stop = maskOf(0xff), 2, []int32{4, 5, -1, vocab}
			r.Bias = []sample.Adjustment{{Token: 0, Bias: float32(math.Inf(-1))}, {Token: 9, Bias: float32(math.Inf(-1))}}
		}, nil)
		s.until(c, 10)
		s.wants(step{1: 0xce}, step{1: 0xce}, step{1: 0xfe}, step{1: 0xfe}, step{1: 0xfe})
		if len(s.b.sets) != 2 || adjusted > 0 {
			t.Errorf("two masks of one request were set as %v; %d adjustments", s.b.sets, adjusted)
		}
		// A finite bias is not a mask, however low.
		c = s.ask(2, 1, func(r *engine.Request) { r.Bias = []sample.Adjustment{{Token: 3, Bias: -math.MaxFloat32}} }, nil)
		s.until(c, 10)
		if s.wants(step{}); adjusted != 1 {
			t.Errorf("%d adjustments of one bias", adjusted)
		}
		// They are removed from a function's tokens, too.
		c = s.ask(3, 2, func(r *engine.Request) {
			r.MinTokens, r.Stop = 1, []int32{1}
			r.Constrain = masking(func(_ int, chosen []int32, mask []uint32) error {
				mask[0] = 0xff << (4 * len(chosen))
				return nil
			}).by
			r.Allowed = maskOf(0x3f)
		}, nil)
		s.until(c, 10)
		s.wants(step{3: 0x3d}, step{3: 0x30})
	})
}

// A mask that the executable refuses ends the answers of its step, and is set again for the next.
func TestMasksAreRefused(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		m := maskOf(7)
		s.b.refuseMask = errors.New("no mask")
		c := s.ask(1, 3, by(m), nil)
		if !c.over || !errors.Is(c.err, s.b.refuseMask) || len(s.b.steps) > 0 {
			t.Errorf("a mask that was refused: %v, over: %v, %d steps", c.err, c.over, len(s.b.steps))
		}
		if err := s.e.Check(); err != nil {
			t.Error(err)
		}
		s.b.refuseMask = nil
		c = s.ask(2, 3, by(m), nil)
		s.until(c, 10)
		s.done(c, 3)
		s.wants(map[int32]uint32{2: 7}, map[int32]uint32{2: 7}, map[int32]uint32{2: 7})
		// The step is refused, and the earlier masks are unknown.
		s.b.refuse = errors.New("no step")
		c = s.ask(3, 3, by(maskOf(8)), nil)
		if !c.over || !errors.Is(c.err, s.b.refuse) {
			t.Errorf("a step that was refused: %v, over: %v", c.err, c.over)
		}
		if err := s.e.Check(); err != nil {
			t.Error(err)
		}
		s.b.refuse = nil
	})
}
