package engine_test

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/engine"
)

// begin is a prompt of n tokens, the first of which are those of all, and the rest its own.
func begin(shared, n int) []int32 {
	p := unlike(n)
	for i := range min(shared, n) {
		p[i] = int32(i*i+i/7) % vocab
	}
	return p
}

// prompted is how many tokens of prompts the steps had.
func (s *script) prompted() (n int) {
	for _, step := range s.b.steps {
		_, prompt := step.count()
		n += prompt
	}
	return n
}

// Prompts that begin alike and come together are read once up to where they differ, whatever
// their lengths, and whatever is kept of states.
func TestCommonBeginningsAreReadOnce(t *testing.T) {
	for name, test := range map[string]struct {
		windows []int
		shared  int
		found   int // tokens that each but one can find
	}{
		"pages":                  {[]int{0}, 1000, 992},
		"a window":               {[]int{0, 100}, 1000, 992},
		"states of sequences":    {[]int{0, recurrent}, 1000, 768},
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

// When the one that reads for others ends, another goes on from where it was; so it does when its
// caller does not take what it has.
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
			close(hold)
			if got := s.prompted(); got > 2000+3*100+4*256 {
				t.Errorf("slow: %v: %d tokens are read", slow, got)
			}
			if slow {
				first.leave()
			}
		})
	}
}

// Who stays behind lends his place: short requests that come meanwhile, and a lower priority of
// the one that reads, do not hold him up.
func TestStayingBehindCostsNothing(t *testing.T) {
	scripting(t, engine.Config{Context: 4000, Parallel: 40}, &hashModel{windows: []int{0}}, func(s *script) {
		s.ask(3900, 1, func(r *engine.Request) { r.Prompt, r.Priority = begin(1000, 3900), -1 }, nil)
		s.steps(1)
		urgent := s.ask(1010, 1, func(r *engine.Request) { r.Prompt = begin(1000, 1010) }, nil)
		for i := range 30 {
			s.ask(1200+i, 1, nil, nil)
		}
		s.until(urgent, 7) // 1,010 tokens, an eighth of each step is the first one's
	})
}

// A beginning is read once, too, where the one that reads it has a long prompt and would get
// nothing of a step for itself.
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
