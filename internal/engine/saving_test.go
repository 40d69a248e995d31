package engine_test

import (
	"testing"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// Pages are saved to host memory as long as that is faster than to compute them again. If it was
// slower, a page is saved now and then, to measure again.
func TestSavingHasToPay(t *testing.T) {
	for name, test := range map[string]struct {
		token, page time.Duration
		least, most int // of 400 pages
	}{
		"a slow link":     {10 * time.Microsecond, 5 * time.Millisecond, 1, 150},
		"a quick one":     {10 * time.Microsecond, 50 * time.Microsecond, 400, 1 << 20},
		"a slow model":    {time.Millisecond, 5 * time.Millisecond, 400, 1 << 20},
		"nothing to wait": {10 * time.Microsecond, 0, 400, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			c := engine.Config{Context: 640, Parallel: 1, Host: 1 << 20}
			scripting(t, c, &hashModel{windows: []int{0}}, func(s *script) {
				var moved []int // pages, by step
				s.b.look = func(b *plan.Batch) { moved = append(moved, len(b.States)) }
				run := &clockwork{script: s}
				run.cost = func(rows, prompt int) time.Duration {
					return time.Millisecond + time.Duration(prompt)*test.token + time.Duration(moved[run.done])*test.page
				}
				for i := 0; s.e.Metrics().Evictions < 400; i++ {
					c := s.ask(300+i%200, 1, func(r *engine.Request) { r.Salt = string(rune('a' + i)) }, nil)
					for !c.over {
						run.run(1)
					}
				}
				if n := int(s.e.Metrics().Saves); n < test.least || n > test.most {
					t.Errorf("%d pages are saved, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

// Pages in host memory are restored over several steps if other sequences are decoding, and at once
// if not. They are found and not computed again. A failed step ends only its own requests; another
// step restores its pages.
func TestRestoringIsSpread(t *testing.T) {
	for _, test := range []struct {
		others int
		fails  bool
	}{{others: 0}, {others: 1}, {others: 1, fails: true}} {
		others := test.others
		c := engine.Config{Context: 1400, Parallel: 2, States: 1, Host: 1 << 20} // 44 pages
		scripting(t, c, &hashModel{windows: []int{0}}, func(s *script) {
			most, restored := 0, 0
			var moved []int // pages, by step
			s.b.look = func(b *plan.Batch) {
				n := 0
				for _, op := range b.States {
					if op.Kind == plan.RestorePage {
						n++
					}
				}
				most, restored, moved = max(most, n), restored+n, append(moved, len(b.States))
			}
			run := &clockwork{script: s}
			run.cost = func(rows, prompt int) time.Duration {
				return time.Millisecond * time.Duration(1+prompt+2*moved[run.done])
			}
			until := func(c *caller) {
				for range 60 {
					if !c.over {
						run.run(1)
					}
				}
			}
			until(s.ask(1200, 1, nil, nil))
			for i := range 3 { // they evict its pages
				until(s.ask(1300+i, 1, nil, nil))
			}
			for range others {
				s.ask(3, 200, nil, nil)
				run.run(3)
			}
			most, restored = 0, 0
			again := s.ask(1200, 1, nil, nil)
			for test.fails && restored == 0 {
				run.run(1)
			}
			if test.fails {
				s.next(errLost)
				run.done++
			}
			until(again)
			s.done(again, 1)
			if again.stats.Cached < 1120 || restored < 30 {
				t.Errorf("beside %d others %d tokens are found, of %d pages restored", others, again.stats.Cached, restored)
			}
			if others == 0 && most < 30 || others > 0 && !test.fails && most > 16 {
				t.Errorf("beside %d others a step restores %d pages", others, most)
			}
		})
	}
}
