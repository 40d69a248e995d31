package engine

import (
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/sample"
)

// A Follower is a sequence whose tokens its caller decides: it samples the tokens that would come
// next, and goes back where the caller goes on with others. So a draft model follows an answer of
// another engine.
//
// It rests when it has sampled what was asked for, and keeps its pages as long as no other sequence
// lacks them. Going back is as after wrong drafted tokens: positions are overwritten, and states
// beyond are dropped. A state that every step writes is held where the known tokens ended, and the
// sequence goes back to that.
type Follower struct {
	engine *Engine
	run    *run
}

// following is what a sequence needs to be a follower's.
type following struct {
	limit int  // positions that it runs
	rests bool // it has run them, although it may have lost its pages since
	known int  // tokens that the caller has decided; those after them are sampled
	held  int  // position before which it never goes back
}

// nearTokens is how many tokens a follower may have to run before it samples the first one. One that
// is farther behind catches up beside others.
const nearTokens = 2 * pageTokens

// errLeft ends the run of a follower.
var errLeft = errors.New("the follower has ended")

// Follow returns a follower of an answer to r, which has the number choice. Of r the prompt, the
// sampling parameters, the tokens that are allowed in any case, the priority, salt and client count.
// The caller ends it.
func (e *Engine) Follow(r *Request, choice int) (*Follower, error) {
	vocab := int(e.program.Shapes[e.program.Logits][1])
	own := &Request{
		Prompt: r.Prompt, Tokens: e.config.Context - len(r.Prompt) + 1, MinTokens: r.MinTokens, Stop: below(r.Stop, vocab), Sampling: r.Sampling,
		Priority: r.Priority, Salt: r.Salt, Client: r.Client, Drafts: -1,
	}
	own.Sampling.Choice += uint32(choice)
	for _, b := range r.Bias {
		if int(b.Token) < vocab {
			own.Bias = append(own.Bias, b)
		}
	}
	if r.Allowed != nil && len(r.Allowed.Words) == e.program.MaskWords() {
		own.Allowed = r.Allowed
	}
	if err := own.check(e.config, e.program); err != nil {
		return nil, err
	}
	w := e.newRun(own)
	w.answers[0].following = &following{rests: true}
	return &Follower{engine: e, run: w}, e.enter(w, nil)
}

// below returns the ids below n.
func below(ids []int32, n int) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return int(id) >= n })
}

// End ends f. It may be called while [Engine.Draft] waits for f, and more than once.
func (f *Follower) End() { f.engine.interrupt(f.run, errLeft) }

// An Ahead is what [Engine.Draft] samples for a follower.
type Ahead struct {
	Follower *Follower
	Tokens   []int32 // the known tokens, the prompt first; they begin with those of the last call
	N        int     // tokens to sample, 1 to [MostDraft]
	Draft    []int32 // Draft appends the sampled tokens

	coming int // results that Draft waits for
}

// Draft makes the followers of all go on with their tokens and samples up to N more of each, in
// common steps. It waits for them, but not for followers that are far behind: for these it samples
// nothing, and they catch up. It also samples nothing for one that has ended or failed, and nothing
// beyond the context. One goroutine may call it at a time.
func (e *Engine) Draft(all []Ahead) {
	e.mu.Lock()
	for i := range all {
		all[i].coming = e.advance(&all[i])
	}
	e.work.Signal()
	e.mu.Unlock()
	for i := range all {
		w := all[i].Follower.run
		for ; all[i].coming > 0; all[i].coming-- {
			got := <-w.results
			if got.err != nil {
				e.stopped(w)
				break
			}
			e.taken(w, &got)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range all {
		a := &all[i]
		if s := a.Follower.run.answers[0]; !s.over && s.following.known == len(a.Tokens) {
			drafted := s.tokens[s.following.known:]
			a.Draft = append(a.Draft, drafted[:min(a.N, len(drafted))]...)
		}
	}
}

// stopped ends the run of a follower whose sequence has failed.
func (e *Engine) stopped(w *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop(w, EndedByError)
}

// advance makes the sequence of a go on, and returns how many tokens it is going to sample.
func (e *Engine) advance(a *Ahead) (n int) {
	s := a.Follower.run.answers[0]
	if s.over || e.closing.Load() || len(a.Tokens) > e.config.Context {
		return 0
	}
	for _, id := range a.Tokens[s.following.known:] {
		if id < 0 || int(id) >= e.program.Vocab {
			e.stop(s.run, EndedByError) // it cannot read the token
			return 0
		}
	}
	f := s.following
	e.goOn(s, a.Tokens)
	f.limit = max(f.limit, f.known-1)
	f.rests = false
	s.arrive()
	if !s.placed || f.known-s.sent > nearTokens {
		return 0
	}
	before := len(s.tokens)
	end := min(f.known+min(a.N, MostDraft), e.config.Context+1)
	f.limit = max(f.limit, end-1)
	f.rests = false
	s.arrive()
	return max(0, end-before)
}

// goOn makes tokens the known tokens of s. No step of s in flight samples.
func (e *Engine) goOn(s *sequence, tokens []int32) {
	f := s.following
	if f.known == 0 { // they begin with the prompt
		f.known = s.prompt()
	}
	if !s.placed {
		s.truncate(f.known) // it would run what it has sampled again
	}
	same := f.known
	for same < min(len(s.tokens), len(tokens)) && s.tokens[same] == tokens[same] {
		same++
	}
	if f.known = len(tokens); same < len(tokens) {
		s.truncate(same)
		for _, id := range tokens[same:] {
			s.choose(id)
		}
		if s.sent > same {
			e.goBack(s, same)
		}
	}
	if s.sent <= f.known || !e.writesAlways() {
		f.held = f.known
	}
}

// goBack makes s continue from position pos, or from an earlier one if it has no state there. No
// step of s is in flight.
func (e *Engine) goBack(s *sequence, pos int) {
	if e.writesAlways() {
		pos = s.following.held
	}
	s.sent, s.done = pos, pos
	e.forgetStates(s)
}

// truncate removes the tokens of s from the n-th on.
func (s *sequence) truncate(n int) {
	for _, id := range s.tokens[n:] {
		if at, found := slices.BinarySearchFunc(s.adjust, id, func(a sample.Adjustment, id int32) int { return int(a.Token) - int(id) }); found {
			s.adjust[at].Count--
		}
	}
	s.tokens, s.following.limit = s.tokens[:n], n-1
}

// total returns how many positions s may run.
func (s *sequence) total() int {
	if s.following != nil {
		return s.following.limit
	}
	return s.run.total()
}

// rests reports whether s waits to be told how to go on.
func (s *sequence) rests() bool { return s.following != nil && s.following.rests }

// arrive makes s rest if it has run its positions, or has them from others.
func (s *sequence) arrive() {
	if s.following != nil && s.sent >= s.following.limit {
		s.following.rests = true
	}
}

// settled returns pos, or the position before which s never goes back if that is less.
func (s *sequence) settled(pos int) int {
	if s.following != nil {
		return min(pos, s.following.held)
	}
	return pos
}
