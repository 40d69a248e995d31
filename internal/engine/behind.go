package engine

import "slices"

// Sequences that begin alike and are there at one time are read once: one that has no pages yet
// stays behind the one that reads what both begin with, and goes on from its pages. Meanwhile
// what it would have of each step is the other one's, so that nobody waits longer than if he read
// for himself.

// staysBehind says that s still waits for another one.
func (s *sequence) staysBehind() bool {
	o := s.behind
	if o != nil && (s.placed || o.over || !o.placed || o.missed > 0 || o.done >= s.until) {
		s.behind = nil
	}
	return s.behind != nil
}

// leader finds a sequence that s, of which so many pages are there, can stay behind: one that
// reads on from there what s begins with, and is ready for more. It reports whether there is one.
func (e *Engine) leader(s *sequence, pages int) bool {
	if s.whole {
		return false
	}
	s.behind, s.until = nil, pages*pageTokens
	for _, o := range e.queue.active {
		if o == s || !o.placed || o.over || o.missed > 0 || o.class != s.class || o.sent < pages*pageTokens || o.rest() == 0 && o.under == 0 || o.run.Salt != s.run.Salt {
			continue
		}
		end := s.common(o) * pageTokens
		if s.stops {
			end -= end % checkpointTokens
		}
		if end > s.until && end > o.done {
			s.behind, s.until = o, end
		}
	}
	return s.behind != nil
}

// followFirst has those who have come find whom they can stay behind, before a step is shared out.
func (e *Engine) followFirst() {
	for _, s := range e.queue.active {
		if s.placed || s.sought {
			continue
		}
		s.sought = true
		if pages, _ := e.match(s); e.tree.beginnings[beginning{s.run.Salt, s.class}] != nil {
			e.leader(s, pages)
		}
	}
}

// common is how many of the first pages of tokens s can find where o has read them.
func (s *sequence) common(o *sequence) (pages int) {
	most := min(s.reusable(), len(o.tokens)) / pageTokens
	for pages < most && slices.Equal(s.page(pages), o.page(pages)) {
		pages++
	}
	return pages
}

// A claim is what a sequence would have of a step's room for prompts, for itself or for the one
// that it stays behind.
type claim struct {
	of             *sequence
	until          int // position
	priority, rest int
}

// claim is that of s, which has tokens of a prompt left.
func (s *sequence) claim() claim {
	c := claim{of: s, until: s.sent + s.rest(), priority: s.run.Priority, rest: s.rest()}
	if s.staysBehind() {
		c.of, c.until = s.behind, min(s.until, s.behind.sent+s.behind.rest())
		c.rest = len(s.tokens) - min(s.behind.sent, s.until)
	}
	return c
}
