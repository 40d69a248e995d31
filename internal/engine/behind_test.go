package engine_test

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/engine"
)

// begin returns a prompt of n tokens that starts with shared tokens.
func begin(shared, n int) []int32 {
	p := unlike(n)
	for i := range min(shared, n) {
		p[i] = int32(i*i+i/7) % vocab
	}
	return p
}

// prompted returns the number of prompt tokens in all steps.
func (s *script) prompted() (n int) {
	for _, step := range s.b.steps {
		_, prompt := step.count()
		n += prompt
	}
	return n
}

// Prompts that arrive together compute their common beginning once, whatever their lengths and
// kinds of states.
func TestCommonBeginningsAreReadOnce(t *testing.T) {
	for name, test := range map[string]struct {
		windows []int
		shared  int
		found   int // tokens that each but one can find
	}{
		"pages":                  {[]int{0}, 1000, 992},
		"a window":               {[]int{0, 100}, 1000, 992},
		"states of sequences":    {[]int{0, recurrent}, 1000, 960},
		"states in chunks":       {[]int{0, delta}, 1000, 960},
		"states of both kinds":   {[]int{recurrent, delta, 0}, 1000, 960},
		"all of the next prompt": {[]int{0}, 1100, 1088},
		"a page":                 {[]int{0}, 40, 32},
	} {
		for _, together := range []int{2, 3, 16} {
			t.Run(fmt.Sprintf("%s, %d", name, together), func(t *testing.T) {
				scripting(t, engine.Config{Context: 1500, Parallel: 16}, &hashModel{windows: test.windows}, func(s *script) {
					var callers []*caller
					own := 0
					for i := range together {
						n := 1100 + (i*37)%together
						own += n - test.found
						callers = append(callers, s.ask(n, 3, func(r *engine.Request) { r.Prompt = begin(test.shared, n) }, nil))
					}
					for _, c := range callers {
						s.until(c, 400)
						s.done(c, 3)
					}
					if got, most := s.prompted(), test.found+own; got > most {
						t.Errorf("%d tokens are read, want %d at most", got, most)
					}
				})
			})
		}
	}
}

// If the leader ends or its caller is slow, another sequence continues from its pages.
func TestAnotherTakesOver(t *testing.T) {
	for _, slow := range []bool{false, true} {
		scripting(t, engine.Config{Context: 3000, Parallel: 4}, &hashModel{windows: []int{0}}, func(s *script) {
			hold := make(chan bool)
			first := s.ask(2100, 3, func(r *engine.Request) {
				r.Prompt = begin(2000, 2100)
				for i := 600; slow && i < 1000; i++ {
					r.Outputs = append(r.Outputs, engine.Output{Token: int32(i)})
				}
			}, func(*engine.Result) bool { return !slow || <-hold })
			var others []*caller
			for i := range 3 {
				others = append(others, s.ask(2050+i, 3, func(r *engine.Request) { r.Prompt = begin(2000, 2050+i) }, nil))
			}
			s.steps(4)
			if !slow {
				first.leave()
			}
			for _, c := range others {
				s.until(c, 100)
				s.done(c, 3)
			}
			if got := s.prompted(); got > 2000+3*100+4*256 {
				t.Errorf("slow: %v: %d tokens are read", slow, got)
			}
			close(hold)
			if slow {
				first.leave()
			}
		})
	}
}

// A sequence that stays behind gives its share of the step to the leader: neither short requests
// that arrive later nor a lower priority of the leader delay it.
func TestStayingBehindCostsNothing(t *testing.T) {
	scripting(t, engine.Config{Context: 4000, Parallel: 40}, &hashModel{windows: []int{0}}, func(s *script) {
		s.ask(3900, 1, func(r *engine.Request) { r.Prompt, r.Priority = begin(1000, 3900), -1 }, nil)
		s.steps(1)
		urgent := s.ask(1010, 1, func(r *engine.Request) { r.Prompt = begin(1000, 1010) }, nil)
		for i := range 30 {
			s.ask(1200+i, 1, nil, nil)
		}
		s.until(urgent, 7) // 1,010 tokens; the first in the queue gets an eighth of each step
	})
}

// A common beginning is also computed once if its leader has a long prompt and would get no tokens
// of a step for itself.
func TestLongPromptReadsForShortOnes(t *testing.T) {
	scripting(t, engine.Config{Context: 4000, Parallel: 8}, &hashModel{windows: []int{0}}, func(s *script) {
		all := []*caller{s.ask(3999, 1, nil, nil)}
		s.steps(1)
		all = append(all, s.ask(3000, 1, func(r *engine.Request) { r.Prompt = begin(1000, 3000) }, nil))
		s.steps(2)
		for i := range 3 {
			all = append(all, s.ask(1010+i, 1, func(r *engine.Request) { r.Prompt = begin(1000, 1010+i) }, nil))
		}
		for _, c := range all[2:] {
			s.until(c, 10)
		}
		for _, c := range all {
			s.until(c, 60)
		}
		if got, most := s.prompted(), 3999+3000+(1010+1011+1012-3*992); got > most {
			t.Errorf("%d tokens are read, want %d at most", got, most)
		}
	})
}
