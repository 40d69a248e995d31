package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
)

// A clockwork makes the steps of a script take the time that cost returns.
type clockwork struct {
	*script
	cost func(rows, prompt int) time.Duration
	done int
}

// count returns how many prompt tokens and how many other tokens a step has.
func (s scriptedStep) count() (rows, prompt int) {
	for _, part := range s {
		if part.tokens == 1 {
			rows++
		} else {
			prompt += part.tokens
		}
	}
	return rows, prompt
}

// run ends n steps, and returns the time and the prompt tokens of each.
func (c *clockwork) run(n int) (times []time.Duration, prompts []int) {
	c.t.Helper()
	for range n {
		synctest.Wait()
		if len(c.b.steps) == c.done {
			c.t.Fatal("no step is under way")
		}
		rows, prompt := c.b.steps[c.done].count()
		took := c.cost(rows, prompt)
		times, prompts = append(times, took), append(prompts, prompt)
		time.Sleep(took)
		c.b.proceed <- nil
		c.done++
	}
	synctest.Wait()
	return times, prompts
}

// linear returns the cost of a device with these times for a step, a row and a prompt token.
func linear(step, row, token time.Duration) func(rows, prompt int) time.Duration {
	return func(rows, prompt int) time.Duration {
		return step + time.Duration(rows)*row + time.Duration(prompt)*token
	}
}

// Steps beside decoding sequences fit the gap, on fast and slow devices, beside few and many rows.
func TestStepsTakeTheGap(t *testing.T) {
	const gap = 40 * time.Millisecond
	for name, test := range map[string]struct {
		cost        func(rows, prompt int) time.Duration
		rows        int
		least, most int           // prompt tokens
		longest     time.Duration // time of a step
	}{
		"fast":          {linear(5*time.Millisecond, 100*time.Microsecond, 50*time.Microsecond), 20, 608, 660, gap},
		"faster":        {linear(time.Millisecond, 10*time.Microsecond, 10*time.Microsecond), 20, 2048, 2048, gap},
		"few rows":      {linear(5*time.Millisecond, 500*time.Microsecond, 50*time.Microsecond), 2, 608, 690, gap},
		"many rows":     {linear(5*time.Millisecond, 500*time.Microsecond, 50*time.Microsecond), 48, 192, 220, gap},
		"slow":          {linear(5*time.Millisecond, 0, time.Millisecond), 4, 32, 35, gap},
		"slower":        {linear(5*time.Millisecond, 0, 3*time.Millisecond), 4, 32, 32, 101 * time.Millisecond},
		"without a gap": {linear(50*time.Millisecond, 0, 10*time.Microsecond), 4, 32, 32, 51 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			c := engine.Config{Context: 70_000, Parallel: 50, Chunk: 2048, Gap: gap, States: 1 << 30}
			scripting(t, c, &hashModel{windows: []int{0}}, func(s *script) {
				run := &clockwork{script: s, cost: test.cost}
				for i := range test.rows {
					s.ask(2+i, 1000, nil, nil)
				}
				run.run(20)
				s.ask(69_000, 1, nil, nil)
				run.run(16)
				times, prompts := run.run(6)
				for i, n := range prompts {
					if n < test.least || n > test.most || times[i] > test.longest {
						t.Errorf("a step has %d tokens of prompts and takes %v; want %d to %d, and %v", n, times[i], test.least, test.most, test.longest)
					}
				}
				m := s.e.Metrics().Pace
				if m.Gap != gap || m.PromptTokens < test.least || m.PromptTokens > test.most || m.Token < 9*time.Microsecond {
					t.Errorf("the metrics say %+v", m)
				}
			})
		})
	}
}

// When a device becomes slower, steps get fewer tokens, and more again later.
func TestStepsFollowTheDevice(t *testing.T) {
	const gap = 40 * time.Millisecond
	scripting(t, engine.Config{Context: 30_000, Parallel: 3, Chunk: 1024, Gap: gap}, &hashModel{windows: []int{0}}, func(s *script) {
		run := &clockwork{script: s}
		s.ask(2, 1000, nil, nil)
		s.ask(29_000, 1, nil, nil)
		for _, test := range []struct {
			token       time.Duration
			least, most int
		}{{50 * time.Microsecond, 639, 767}, {200 * time.Microsecond, 160, 192}, {50 * time.Microsecond, 639, 767}} {
			run.cost = linear(4*time.Millisecond, 0, test.token)
			run.run(12)
			for _, n := range second(run.run(4)) {
				if n < test.least || n > test.most {
					t.Errorf("with %v a token, a step has %d; want %d to %d", test.token, n, test.least, test.most)
				}
				if n > 512 && (n+1)%128 != 0 {
					t.Errorf("with %v a token, a step has %d prompt tokens and one that decodes, which are no whole tiles of 128", test.token, n)
				}
			}
		}
	})
}

func second[A, B any](_ A, b B) B { return b }

// A step of prompts alone has as many tokens as make the device fast, and more than 1,024 only if it
// takes at most half a second, five gaps.
func TestStepsSaturate(t *testing.T) {
	for name, test := range map[string]struct {
		cost func(rows, prompt int) time.Duration
		want int
	}{
		"weights are read for 20 ms": {func(_, n int) time.Duration { return max(20*time.Millisecond, time.Duration(n)*50*time.Microsecond) }, 512},
		"a step costs much":          {linear(100*time.Millisecond, 0, 10*time.Microsecond), 4096},
		"a step takes long":          {linear(300*time.Millisecond, 0, 10*time.Microsecond), 1024},
		"a device is fast":           {linear(2*time.Millisecond, 0, 10*time.Microsecond), 4096},
		"a token costs as much":      {linear(0, 0, 100*time.Microsecond), 256},
	} {
		t.Run(name, func(t *testing.T) {
			scripting(t, engine.Config{Context: 9000, Parallel: 4, Chunk: 4096}, &hashModel{windows: []int{0}}, func(s *script) {
				run := &clockwork{script: s, cost: test.cost}
				for i := range 24 {
					s.ask(8000+i, 0, nil, nil)
				}
				run.run(10)
				count := map[int]int{}
				for _, n := range second(run.run(20)) {
					count[n]++
				}
				if count[test.want] < 15 {
					t.Errorf("steps have %v tokens of prompts; want %d", count, test.want)
				}
			})
		})
	}
}

// When a device becomes slower, a step of prompts alone has fewer tokens.
func TestLongStepsShrink(t *testing.T) {
	scripting(t, engine.Config{Context: 9000, Parallel: 4, Chunk: 4096}, &hashModel{windows: []int{0}}, func(s *script) {
		run := &clockwork{script: s, cost: linear(2*time.Millisecond, 0, 10*time.Microsecond)}
		for i := range 24 {
			s.ask(8000+i, 0, nil, nil)
		}
		run.run(16)
		run.cost = linear(100*time.Millisecond, 0, 100*time.Microsecond)
		run.run(8)
		for _, n := range second(run.run(12)) {
			if n != 2048 {
				t.Errorf("a step has %d tokens; want 2048", n)
			}
		}
	})
}
