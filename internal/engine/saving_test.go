package engine_test

import (
	"testing"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// Pages are saved to the host's memory as long as that takes less time than to make them again,
// and, where it took longer, now and then, to see whether it still does.
func TestSavingHasToPay(t *testing.T) {
	for name, test := range map[string]struct {
		token, page time.Duration
		least, most int // of 400 pages
	}{
		"a slow link":     {10 * time.Microsecond, 5 * time.Millisecond, 1, 100},
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
