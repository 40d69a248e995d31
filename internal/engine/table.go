package engine

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// What the kinds of states differ in is here: which pages a sequence has, which it needs
// to go on, and which of them others may find.

// checkpointTokens apart, at absolute multiples, states per sequence are kept to be found
// again: no chunk of a prompt goes beyond where there are such states.
const checkpointTokens = 256

// slotsOfSequence are the slots that a sequence has at most: one that its oldest step
// under way reads, and one that each of its steps writes.
const slotsOfSequence = 1 + stepsAhead

// idleSlots are those that there are for checkpoints, at most, beside those that each
// sequence needs.
const idleSlots = 5

// pagesOf is how many pages hold n positions.
func pagesOf(n int) int { return (n + pageTokens - 1) / pageTokens }

// firstPage is the first page that a token at pos needs. Page i of states per sequence is
// the state after the tokens of page i.
func firstPage(g plan.Group, pos int) int { return g.FirstVisible(pos) / pageTokens }

// most is how many pages of group g one sequence has at most. A window that starts
// in one page and ends in another takes one more than its length does; it lags
// behind by the steps under way.
func (c Config) most(g plan.Group) int {
	all := pagesOf(c.Context)
	switch {
	case g.Kind == plan.PerSequence:
		return slotsOfSequence
	case g.Window == 0:
		return all
	}
	return min(all, pagesOf(g.Window-1+stepsAhead*c.chunk())+1)
}

// share is how many pages of group g there are for each of the sequences beside each
// other, where they are so many pages of tokens long.
func (c Config) share(g plan.Group, pages int) int {
	if n := c.most(g); g.Kind == plan.PerToken || pages == 0 {
		return min(pages, n)
	}
	return slotsOfSequence + min(pages*pageTokens/checkpointTokens, idleSlots)
}

// need is how many pages of group g a sequence has that goes on from so many pages of
// tokens to position end.
func (c Config) need(g plan.Group, pages, end int) int {
	if g.Kind == plan.PerSequence {
		return slotsOfSequence
	}
	first := firstPage(g, pages*pageTokens)
	return min(pagesOf(end), first+c.most(g)) - first
}

// A table is the pages of one group that a sequence has. Of states per token these are
// the pages first and on. Of states per sequence each is a slot with the state after some
// of the tokens: every step reads the last one and writes a new one.
type table struct {
	group plan.Group
	first int // of states per token: logical page of pages[0]
	pages []int32
	after []int // of states per sequence: how many tokens pages[i] has the state after
}

// begin makes t that of a sequence that goes on from so many pages of tokens, and
// returns the first of those that it needs.
func (t *table) begin(pages int) (first int) {
	first, t.pages, t.after = firstPage(t.group, pages*pageTokens), t.pages[:0], t.after[:0]
	if t.group.Kind == plan.PerToken {
		t.first = first
	}
	return first
}

// append adds the next page, which is filled up to position end.
func (t *table) append(page int32, end int) {
	if t.pages = append(t.pages, page); t.group.Kind == plan.PerSequence {
		t.after = append(t.after, end)
	}
}

// lacks is how many pages a step takes that goes on to position end.
func (t *table) lacks(end int) int {
	if t.group.Kind == plan.PerSequence {
		return 1
	}
	return max(0, pagesOf(end)-t.end())
}

// end is the logical page after the last, of states per token.
func (t *table) end() int { return t.first + len(t.pages) }

// past is how many of the first pages no step needs that goes on from position pos or
// later.
func (t *table) past(pos int) int {
	if t.group.Kind == plan.PerSequence {
		n, _ := slices.BinarySearch(t.after, pos)
		return n
	}
	return min(max(0, firstPage(t.group, pos)-t.first), len(t.pages))
}

// drop takes the first n pages off.
func (t *table) drop(n int) {
	t.pages = append(t.pages[:0], t.pages[n:]...)
	if t.group.Kind == plan.PerSequence {
		t.after = append(t.after[:0], t.after[n:]...)
	} else {
		t.first += n
	}
}

// found is the page by which others find the states of page i of the tokens, or none.
func (t *table) found(i int) int32 {
	k := i - t.first
	if t.group.Kind == plan.PerSequence {
		end := (i + 1) * pageTokens
		at, there := slices.BinarySearch(t.after, end)
		if k = at; !there || end%checkpointTokens != 0 {
			return none
		}
	}
	if k < 0 {
		return none
	}
	return t.pages[k]
}

// history is how many pages of tokens come before the end of pages[k], which is found by
// them if by any.
func (t *table) history(k int) int {
	if t.group.Kind == plan.PerSequence {
		return t.after[k] / pageTokens
	}
	return t.first + k + 1
}

// covers reports whether t has what steps need that go on from position from, and what
// those have filled up to position to.
func (t *table) covers(from, to int) bool {
	if t.group.Kind == plan.PerToken {
		return t.first <= firstPage(t.group, from) && t.end() >= pagesOf(to)
	}
	has := func(pos int) bool { return pos == 0 || slices.Contains(t.after, pos) }
	return has(from) && has(to) && len(t.after) == len(t.pages)
}

// add makes t the table of a step's next sequence.
func (t *table) add(to *plan.PageTable) {
	if t.group.Kind == plan.PerToken {
		to.Add(t.first, t.pages...)
		return
	}
	in, last := none, len(t.pages)-1
	if last > 0 {
		in = t.pages[last-1]
	}
	to.AddSlots(in, t.pages[last])
}
