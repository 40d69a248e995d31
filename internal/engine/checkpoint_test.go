package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// slotted are models with every kind of states per sequence.
var slotted = [][]int{{recurrent}, {0, recurrent}, {40, recurrent, 0}, {delta}, {delta, 0}, {recurrent, delta, 0}, {chunked(100), recurrent, delta}}

// cached serves a request and returns how many of its tokens were found.
func (s *script) cached(r engine.Request) int {
	s.t.Helper()
	c := s.ask(1, 0, func(own *engine.Request) { *own = r }, nil)
	s.until(c, 2000)
	if c.err != nil {
		s.t.Fatal(c.err)
	}
	return c.stats.Cached
}

// A prefix is found as far as every group can continue: all pages of a group that keeps everything,
// a window's pages, and a checkpoint of states per sequence. There is one at the last multiple of 64
// tokens of a prompt and of an answer, one where prompts have parted, and others while slots are
// free.
func TestCheckpointsAreFound(t *testing.T) {
	for _, windows := range slotted {
		scripting(t, engine.Config{Context: 1000, Parallel: 4}, &hashModel{windows: windows}, func(s *script) {
			long := unlike(600)
			with := func(at int, id int32) []int32 {
				p := slices.Clone(long)
				p[at] = id
				return p
			}
			for _, test := range []struct {
				what string
				r    engine.Request
				want int
			}{
				{"new", engine.Request{Prompt: long, Tokens: 1}, 0},
				{"the same", engine.Request{Prompt: long, Tokens: 1}, 576},
				{"up to a checkpoint and a token", engine.Request{Prompt: long[:577], Tokens: 1}, 576},
				{"up to a checkpoint", engine.Request{Prompt: long[:576], Tokens: 1}, 512},
				{"of fewer than 64 tokens", engine.Request{Prompt: long[:60], Tokens: 1}, 0},
				{"with another token", engine.Request{Prompt: with(400, 60), Tokens: 1}, 256},
				{"with a third", engine.Request{Prompt: with(400, 59), Tokens: 1}, 384},
				{"with an output", engine.Request{Prompt: long, Outputs: []engine.Output{{Token: 300, Want: plan.WantLogits}}}, 256},
				{"of somebody else", engine.Request{Prompt: long, Tokens: 1, Salt: "another"}, 0},
				{"and an answer", engine.Request{Prompt: long[:250], Tokens: 80, Salt: "third"}, 0},
				{"with half of the answer", engine.Request{Prompt: append(slices.Clone(long[:250]), make([]int32, 30)...), Tokens: 1, Salt: "third"}, 256},
				{"with the answer", engine.Request{Prompt: append(slices.Clone(long[:250]), make([]int32, 79)...), Tokens: 1, Salt: "third"}, 320},
			} {
				if got := s.cached(test.r); got != test.want {
					t.Errorf("layers %v: a prompt %s: %d tokens are found, want %d", windows, test.what, got, test.want)
				}
			}
		})
	}
}

// A step in the middle of a chunk reads the slot of the last multiple and writes none, and a
// sequence that decodes has the rows of its chunk and of the steps in flight alone.
func TestSlotsOfDecoding(t *testing.T) {
	m := &hashModel{windows: []int{delta, 0}}
	scripting(t, engine.Config{Context: 1000, Parallel: 2}, m, func(s *script) {
		s.b.look = func(b *plan.Batch) {
			for q := range b.Seqs() {
				from, to := int(b.Positions[b.Start[q]]), int(b.Positions[b.Start[q+1]-1])+1
				in, out := b.Tables[0].Slots(q)
				if (in >= 0) != (from >= 64) || (out >= 0) != (from/64 < to/64) {
					t.Errorf("a step from %d to %d reads slot %d and writes slot %d", from, to, in, out)
				}
				if n := b.Tables[1].Start[q+1] - b.Tables[1].Start[q]; from > int(b.Lengths[q])+1 && n > 3 {
					t.Errorf("a step of the token at %d has %d pages of rows", from, n)
				}
			}
		}
		for _, n := range []int{1, 70, 500} {
			c := s.ask(n, 300, nil, nil)
			s.until(c, 400)
			s.done(c, 300)
		}
		if g := s.e.Metrics().Groups; g[0].Used != 0 || g[1].Used != 0 || g[1].Idle != 0 || g[0].Idle == 0 || g[2].Idle == 0 {
			t.Errorf("at rest: %+v", g)
		}
	})
}

// A layer that sees the positions since a multiple has no page before it, and a prefix that ends at
// the multiple needs none.
func TestChunkedPages(t *testing.T) {
	m := &hashModel{windows: []int{chunked(256), 0}}
	scripting(t, engine.Config{Context: 2000, Parallel: 1, States: 1}, m, func(s *script) {
		n := s.b.limits.Pages
		if n[1] != 63 || n[0] != (255+2*256+31)/32 {
			t.Fatalf("pages %v", n)
		}
		p := unlike(1000)
		for i, want := range []int{0, 992, 992} {
			if got := s.cached(engine.Request{Prompt: p, Tokens: 1}); got != want {
				t.Errorf("%d: %d tokens are found, want %d", i, got, want)
			}
		}
		// Other prompts take the pages of the chunks, but not all of the others.
		other := unlike(900)
		if got := s.cached(engine.Request{Prompt: other, Tokens: 1}); got != 0 {
			t.Errorf("%d tokens are found of a new prompt", got)
		}
		if got := s.cached(engine.Request{Prompt: p[:800], Tokens: 1}); got != 768 {
			t.Errorf("%d tokens are found after the pages of chunks are gone, want %d", got, 768)
		}
	})
}

// If there are slots for one sequence alone, the oldest one continues and the others wait. Evicted
// slots go to host memory and are restored.
func TestSlotsRunShort(t *testing.T) {
	for _, windows := range [][]int{{0, recurrent}, {0, delta}, {0, delta, recurrent}} {
		m := &hashModel{windows: windows, numbers: 700}
		scripting(t, engine.Config{Context: 700, Parallel: 3, States: 1, Host: 1 << 20}, m, func(s *script) {
			want := 3 // that of the oldest step under way and one for each of two
			if windows[1] == recurrent {
				want += 2 // for checkpoints
			}
			if n := s.b.limits.Pages[1]; n != want {
				t.Fatalf("%d slots for one sequence, want %d", n, want)
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
				t.Errorf("layers %v: %d tokens are found again, %+v", windows, again.stats.Cached, m)
			}
		})
	}
}

// The pools have slots to continue each sequence in, pages for the rows of each, and checkpoints
// that take at most a tenth of the memory, but not more than a sequence can leave.
func TestRoomForSlots(t *testing.T) {
	for _, test := range []struct {
		windows           []int
		context, states   int
		numbers           int
		slots, rows, most int // of the last group, of the one before it, checkpoints
	}{
		{[]int{0, recurrent}, 100, 0, 1, 4 * 3, 0, 6},
		{[]int{0, recurrent}, 1 << 14, 0, 1000, 4 * 3, 0, 8},
		{[]int{0, recurrent}, 1 << 14, 1, 1000, 3, 0, 2},
		{[]int{0, recurrent}, 1 << 14, 1 << 18, 1000, 4 * 3, 0, 3},
		{[]int{0, delta}, 1 << 14, 0, 1000, 4 * 2, 4*3 + 2*8, 8},
		{[]int{0, delta}, 1 << 14, 1, 1000, 3, 18, 2},
	} {
		m := &hashModel{windows: test.windows, numbers: test.numbers}
		p := m.program()
		c := engine.Config{Context: test.context, Parallel: 4, States: test.states, Cache: tensor.F32}
		l, n := c.Limits(p), c.Checkpoints(p)[1]
		all, err := l.StateBytes(p)
		if err != nil {
			t.Fatal(err)
		}
		if l.Pages[1] != test.slots+n || n > test.most || n < test.most/2 || 10*n*8*test.numbers > all || l.Pages[0] < (test.context+31)/32 {
			t.Errorf("%+v: %v pages and slots, %d for checkpoints", test, l.Pages, n)
		}
		if test.rows > 0 && l.Pages[2] != test.rows {
			t.Errorf("%+v: %v pages and slots, of rows", test, l.Pages)
		}
		if test.states > 1 && all > test.states {
			t.Errorf("%+v: %d bytes", test, all)
		}
	}
}

// hybrids are the shapes of models in which a slot takes as much memory as the keys of so many
// tokens: a convolution's inputs, and the matrices of most layers.
var hybrids = []*hashModel{
	{windows: []int{recurrent, 0}, numbers: 32},
	{windows: []int{recurrent, 0}, numbers: 400},
	{windows: []int{recurrent, 0}, numbers: 1000},
	{windows: []int{delta, 0}, numbers: 3000},
	{windows: []int{recurrent, delta, 0}, numbers: 1500},
	{windows: []int{recurrent, delta}, numbers: 10},
}

// withinTenth checks that the checkpoints take less than a tenth of the pools.
func (s *script) withinTenth(c engine.Config) {
	s.t.Helper()
	c.Cache = tensor.F32
	p, l := s.b.program, s.b.limits
	all, err := l.StateBytes(p)
	if err != nil {
		s.t.Fatal(err)
	}
	slots := 0
	for g, n := range c.Checkpoints(p) {
		size, err := l.PageBytes(p, g)
		if err != nil {
			s.t.Fatal(err)
		}
		slots += n * size
	}
	if 10*slots > all {
		s.t.Errorf("checkpoints take %d bytes of %d", slots, all)
	}
}

// Of the tokens that a chat's turn has in common with the turns before it, at least 95% are not run
// again, in several chats of ten turns side by side.
func TestChatsAreNotRunAgain(t *testing.T) {
	for _, m := range hybrids {
		for _, test := range []struct{ chats, parallel int }{{1, 1}, {1, 4}, {4, 4}} {
			chats := test.chats
			t.Run(fmt.Sprintf("%v, %d chats in %d places", m.windows, chats, test.parallel), func(t *testing.T) {
				c := engine.Config{Context: 8192, Parallel: test.parallel}
				scripting(t, c, m, func(s *script) {
					if test.parallel > 1 {
						s.withinTenth(c)
					}
					repeated, found := 0, 0
					past := make([][]int32, chats)
					for i := range past {
						past[i] = begin(400, 400+i)
					}
					known := make([]int, chats)
					for turn := range 10 {
						var all []*caller
						for i := range past {
							answer := 100 + 37*((turn+i)%9)
							prompt := slices.Concat(past[i], unlike(50+61*((3*turn+i)%7)))
							all = append(all, s.ask(1, answer, func(r *engine.Request) { r.Prompt = prompt }, nil))
							past[i] = slices.Concat(prompt, make([]int32, answer))
						}
						for i, c := range all {
							s.until(c, 2000)
							if repeated += known[i]; turn > 0 {
								found += c.stats.Cached
							}
							known[i] = len(past[i]) - 1 // the last token did not run
						}
					}
					t.Logf("%d of %d tokens are found, %.1f%%", found, repeated, 100*float64(found)/float64(repeated))
					if found*100 < repeated*95 {
						t.Errorf("%d tokens of %d are found", found, repeated)
					}
				})
			})
		}
	}
}

// The same if a chat's template leaves out most of the last answer, but for the answer.
func TestChatsWithoutReasoning(t *testing.T) {
	for _, m := range hybrids {
		t.Run(fmt.Sprint(m.windows), func(t *testing.T) {
			c := engine.Config{Context: 8192, Parallel: 4}
			scripting(t, c, m, func(s *script) {
				repeated, found := 0, 0
				past := begin(1000, 1000)
				for turn := range 10 {
					prompt := slices.Concat(past, unlike(100+50*(turn%4)))
					got := s.cached(engine.Request{Prompt: prompt, Tokens: 300})
					if turn > 0 {
						repeated, found = repeated+len(past)-50, found+got
					}
					past = slices.Concat(prompt, unlike(50))
				}
				t.Logf("%d of %d tokens are found, %.1f%%", found, repeated, 100*float64(found)/float64(repeated))
				if found*100 < repeated*95 {
					t.Errorf("%d tokens of %d are found", found, repeated)
				}
			})
		})
	}
}

// Of a prompt that many clients begin with, at least 95% is not run again, whether they come one
// after another or in groups.
func TestClientsWithOnePrompt(t *testing.T) {
	for _, m := range hybrids {
		for _, group := range []int{1, 6} {
			t.Run(fmt.Sprintf("%v, %d at a time", m.windows, group), func(t *testing.T) {
				c := engine.Config{Context: 8192, Parallel: 4}
				scripting(t, c, m, func(s *script) {
					s.withinTenth(c)
					const shared, clients = 3050, 60
					own := 0
					for i := 0; i < clients; i += group {
						var all []*caller
						for k := range group {
							n := shared + 100 + i + k
							own += n - shared
							all = append(all, s.ask(n, 40, func(r *engine.Request) { r.Prompt = begin(shared, n) }, nil))
						}
						for _, c := range all {
							s.until(c, 2000)
							s.done(c, 40)
						}
					}
					run := int(s.e.Metrics().PromptTokens)
					again := run - own - shared
					t.Logf("%d of %d tokens are run again, %.1f%%", again, shared*(clients-1), 100*float64(again)/float64(shared*(clients-1)))
					if again*100 > shared*(clients-1)*5 {
						t.Errorf("%d tokens are run again of %d", again, shared*(clients-1))
					}
				})
			})
		}
	}
}

// A sequence that is preempted goes on near the place where it was: in its prompt after the last
// chunk that was done, and in its answer after the last multiple of 64.
func TestPreemptedGoOnFromCheckpoints(t *testing.T) {
	for _, m := range hybrids {
		for _, steps := range []int{4, 30} {
			scripting(t, engine.Config{Context: 3000, Parallel: 1}, m, func(s *script) {
				low := s.ask(1500, 150, nil, nil)
				s.steps(steps)
				high := s.ask(4, 3, func(r *engine.Request) { r.Priority = 1 }, nil)
				s.until(high, 10)
				s.until(low, 400)
				s.done(low, 150)
				computed := 0
				for _, step := range s.b.steps {
					computed += step[1500].tokens
				}
				lost := 2 * 256 // in flight
				if steps == 30 {
					lost = 64 + 2
				}
				if low.stats.Preemptions != 1 || computed > 1500+149+lost {
					t.Errorf("layers %v: after %d steps, %d tokens were run for a sequence of %d, which was preempted %d times", m.windows, steps, computed, 1500+149, low.stats.Preemptions)
				}
			})
		}
	}
}

// A chat whose pages have been evicted comes back from host memory.
func TestCheckpointsInHostMemory(t *testing.T) {
	m := &hashModel{windows: []int{recurrent, delta, 0}, numbers: 300}
	c := engine.Config{Context: 2048, Parallel: 2, States: 1, Host: 1 << 20}
	scripting(t, c, m, func(s *script) {
		turn := func(chat, n, answer int) int {
			return s.cached(engine.Request{Prompt: begin(n, n), Tokens: answer, Salt: fmt.Sprint(chat)})
		}
		for i := range 6 {
			turn(i, 1500, 80)
		}
		for i := range 6 {
			prompt := slices.Concat(begin(1500, 1500), make([]int32, 80), unlike(100))
			if got := s.cached(engine.Request{Prompt: prompt, Tokens: 1, Salt: fmt.Sprint(i)}); got < 1472 {
				t.Errorf("chat %d: %d tokens are found", i, got)
			}
		}
		if m := s.e.Metrics(); m.Saves == 0 || m.Restores == 0 {
			t.Errorf("%d saves, %d restores", m.Saves, m.Restores)
		}
	})
}

// A long history keeps checkpoints of a grid when others need the slots of its spare ones: a prompt
// that parts from it for the first time goes on from the last of them.
func TestGrid(t *testing.T) {
	m := &hashModel{windows: []int{recurrent, 0}, numbers: 32}
	scripting(t, engine.Config{Context: 8192, Parallel: 4}, m, func(s *script) {
		long := begin(6000, 6000)
		s.cached(engine.Request{Prompt: long, Tokens: 1})
		for i := range 100 {
			s.cached(engine.Request{Prompt: unlike(100 + i%28), Tokens: 1, Salt: fmt.Sprint(i)})
		}
		got := s.cached(engine.Request{Prompt: slices.Concat(long[:4000], unlike(100)), Tokens: 1})
		if got < 4000-600 || got > 3968 {
			t.Errorf("%d tokens are found", got)
		}
		if m := s.e.Metrics(); m.Evictions == 0 {
			t.Error("nothing had to go")
		}
	})
}
