package engine_test

import (
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A prefix is found as far as every group can continue: all pages of a group that keeps everything,
// a window's pages, and the last checkpoint of states per sequence, one every 256 tokens of a
// prompt or an answer.
func TestCheckpointsAreFound(t *testing.T) {
	for _, windows := range [][]int{{recurrent}, {0, recurrent}, {40, recurrent, 0}} {
		scripting(t, engine.Config{Context: 1000, Parallel: 2}, &hashModel{windows: windows}, func(s *script) {
			cached := func(r engine.Request) int {
				c := s.ask(1, 0, func(own *engine.Request) { *own = r }, nil)
				s.until(c, 200)
				if c.err != nil {
					t.Fatal(c.err)
				}
				return c.stats.Cached
			}
			long := unlike(600)
			other := slices.Clone(long)
			other[400]++
			for _, test := range []struct {
				what string
				r    engine.Request
				want int
			}{
				{"new", engine.Request{Prompt: long, Tokens: 1}, 0},
				{"the same", engine.Request{Prompt: long, Tokens: 1}, 512},
				{"up to a checkpoint and a token", engine.Request{Prompt: long[:513], Tokens: 1}, 512},
				{"up to a checkpoint", engine.Request{Prompt: long[:512], Tokens: 1}, 256},
				{"of fewer than 256 tokens", engine.Request{Prompt: long[:200], Tokens: 1}, 0},
				{"with another token", engine.Request{Prompt: other, Tokens: 1}, 256},
				{"with an output", engine.Request{Prompt: long, Outputs: []engine.Output{{Token: 300, Want: plan.WantLogits}}}, 256},
				{"of somebody else", engine.Request{Prompt: long, Tokens: 1, Salt: "another"}, 0},
				{"and an answer", engine.Request{Prompt: long[:250], Tokens: 30, Salt: "third"}, 0},
				{"with the answer", engine.Request{Prompt: append(slices.Clone(long[:250]), make([]int32, 20)...), Tokens: 1, Salt: "third"}, 256},
			} {
				if got := cached(test.r); got != test.want {
					t.Errorf("layers %v: a prompt %s: %d tokens are found, want %d", windows, test.what, got, test.want)
				}
			}
		})
	}
}

// If there are slots for one sequence alone, the oldest one continues and the others wait. Evicted
// slots go to host memory and are restored.
func TestSlotsRunShort(t *testing.T) {
	m := &hashModel{windows: []int{0, recurrent}}
	scripting(t, engine.Config{Context: 700, Parallel: 3, States: 1, Host: 1 << 20}, m, func(s *script) {
		if n := s.b.limits.Pages[1]; n != 3 {
			t.Fatalf("%d slots for one sequence, want that of the oldest step under way and one for each of two", n)
		}
		var callers []*caller
		for i := range 3 {
			callers = append(callers, s.ask(300+i, 30, nil, nil))
		}
		s.until(callers[2], 300)
		for _, c := range callers {
			s.done(c, 30)
		}
		if n := callers[0].stats.Preemptions; n > 0 {
			t.Errorf("the oldest was preempted %d times", n)
		}
		again := s.ask(300, 1, nil, nil)
		s.until(again, 5)
		s.done(again, 1)
		if m := s.e.Metrics(); again.stats.Cached != 256 || m.Restores == 0 || m.Groups[1].Used != 0 {
			t.Errorf("%d tokens are found again, %+v", again.stats.Cached, m)
		}
	})
}

// Slots and pages share the room for states: each sequence has slots to continue in, and up to five
// checkpoints, depending on its length.
func TestRoomForSlots(t *testing.T) {
	p := (&hashModel{windows: []int{0, recurrent}}).program()
	for _, test := range []struct{ context, states, slots int }{
		{100, 0, 4 * 3}, {600, 0, 4 * (3 + 2)}, {1 << 14, 0, 4 * (3 + 5)}, {1 << 14, 1, 3}, {1 << 14, 1 << 18, 4 * (3 + 5)},
	} {
		c := engine.Config{Context: test.context, Parallel: 4, States: test.states, Cache: tensor.F32}
		if l := c.Limits(p); l.Pages[1] != test.slots || l.Pages[0] < (test.context+31)/32 {
			t.Errorf("%+v: %v pages and slots", test, l.Pages)
		}
	}
}
