package engine

import "slices"

// Sequences with a common beginning compute it once. A sequence without pages stays behind the
// sequence that is running their common beginning, and then continues from its pages. Meanwhile the
// leader gets the follower's share of each step, so waiting costs the follower nothing.

// staysBehind reports whether s still waits for another sequence.
func (s *sequence) staysBehind() bool {
	o := s.behind
	if o != nil && (s.placed || o.over || !o.placed || o.missed > 0 || o.done >= s.until) {
		s.behind = nil
	}
	return s.behind != nil
}

// leader finds a sequence that s can stay behind: one that is placed, is ready for more, and runs
// more of the tokens that s begins with than the given number of pages, which are cached. It sets
// s.behind and s.until and reports whether it found one.
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

// followFirst looks for a leader of each sequence that has just arrived, before a step is shared
// out.
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

// common returns how many of the first pages of s's tokens equal those of o and can be reused.
func (s *sequence) common(o *sequence) (pages int) {
	most := min(s.reusable(), len(o.tokens)) / pageTokens
	for pages < most && slices.Equal(s.page(pages), o.page(pages)) {
		pages++
	}
	return pages
}

// A claim is what a sequence wants of a step's prompt tokens, for itself or for its leader.
type claim struct {
	of             *sequence
	until          int // position
	priority, rest int
}

// claim returns the claim of s, which has prompt tokens left.
func (s *sequence) claim() claim {
	c := claim{of: s, until: s.sent + s.rest(), priority: s.run.Priority, rest: s.rest()}
	if s.staysBehind() {
		c.of, c.until = s.behind, min(s.until, s.behind.sent+s.behind.rest())
		c.rest = len(s.tokens) - min(s.behind.sent, s.until)
	}
	return c
}
