package engine_test

import (
	"testing"

	"github.com/realizar/realizar/internal/engine"
)

// A beginning of many requests outlives prompts that come once, but not forever.
func TestEvictionKeepsWhatIsUsedOften(t *testing.T) {
	scripting(t, engine.Config{Context: 1000, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) { // 32 pages
		serve := func(n int, prompt []int32) int {
			c := s.ask(n, 1, func(r *engine.Request) { r.Prompt = prompt }, nil)
			s.until(c, 20)
			return c.stats.Cached
		}
		for i := range 5 {
			if got := serve(300+i, begin(256, 300+i)); i > 0 && got < 256 {
				t.Fatalf("request %d finds %d tokens", i, got)
			}
		}
		once := 0
		scan := func(n int) {
			for range n {
				serve(400+once, unlike(400+once))
				once++
			}
		}
		scan(4) // 52 pages, more than the pool holds
		if got := serve(310, begin(256, 310)); got < 256 {
			t.Errorf("%d tokens are found after prompts that came once", got)
		}
		scan(100)
		if got := serve(311, begin(256, 311)); got != 0 {
			t.Errorf("%d tokens are found that nobody has asked for in a long time", got)
		}
	})
}
