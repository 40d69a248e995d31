package engine

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// This file has the differences between the kinds of groups: which pages a sequence has, which it
// needs to continue, and which of them others may find.

// checkpointTokens is the distance of checkpoints, at absolute multiples, in groups of states per
// sequence. If a program has such groups, chunks of prompts end at checkpoints.
const checkpointTokens = 256

// slotsOfSequence is the most slots of a sequence: one that its oldest step in flight reads, and
// one that each of its steps writes.
const slotsOfSequence = 1 + stepsAhead

// idleSlots is the most slots for checkpoints, beside those that each sequence needs.
const idleSlots = 5

// pagesOf returns how many pages hold n positions.
func pagesOf(n int) int { return (n + pageTokens - 1) / pageTokens }

// firstPage returns the first page that a token at pos needs. In a group of states per sequence,
// page i is the state after the tokens of page i.
func firstPage(g plan.Group, pos int) int { return g.FirstVisible(pos) / pageTokens }

// most returns the most pages of group g for one sequence. A window that starts in one page and
// ends in another needs one page more than its length. It lags by the steps in flight.
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

// share returns the pages of group g for each of several sequences that are that many pages of
// tokens long.
func (c Config) share(g plan.Group, pages int) int {
	if n := c.most(g); g.Kind == plan.PerToken || pages == 0 {
		return min(pages, n)
	}
	return slotsOfSequence + min(pages*pageTokens/checkpointTokens, idleSlots)
}

// need returns how many pages of group g a sequence has that continues from that many pages of
// tokens to position end.
func (c Config) need(g plan.Group, pages, end int) int {
	if g.Kind == plan.PerSequence {
		return slotsOfSequence
	}
	first := firstPage(g, pages*pageTokens)
	return min(pagesOf(end), first+c.most(g)) - first
}

// A table holds a sequence's pages of one group. For states per token these are consecutive pages
// from first on. For states per sequence each page is a slot with the state after some number of
// tokens: every step reads the last one and writes a new one.
type table struct {
	group plan.Group
	first int // for states per token: logical page of pages[0]
	pages []int32
	after []int // for states per sequence: pages[i] is the state after that many tokens
}

// begin empties t for a sequence that continues from that many pages of tokens, and returns the
// first page that it needs.
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

// lacks returns how many more pages a step to position end needs.
func (t *table) lacks(end int) int {
	if t.group.Kind == plan.PerSequence {
		return 1
	}
	return max(0, pagesOf(end)-t.end())
}

// end returns the logical page after the last, for states per token.
func (t *table) end() int { return t.first + len(t.pages) }

// past returns how many of the first pages are not needed by steps that continue from position pos
// or later.
func (t *table) past(pos int) int {
	if t.group.Kind == plan.PerSequence {
		n, _ := slices.BinarySearch(t.after, pos)
		return n
	}
	return min(max(0, firstPage(t.group, pos)-t.first), len(t.pages))
}

// drop removes the first n pages.
func (t *table) drop(n int) {
	t.pages = append(t.pages[:0], t.pages[n:]...)
	if t.group.Kind == plan.PerSequence {
		t.after = append(t.after[:0], t.after[n:]...)
	} else {
		t.first += n
	}
}

// found returns the page under which page i of the tokens is cached, or none.
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

// history returns the number of pages of tokens up to the end of pages[k]. If the page is cached,
// it is under those tokens.
func (t *table) history(k int) int {
	if t.group.Kind == plan.PerSequence {
		return t.after[k] / pageTokens
	}
	return t.first + k + 1
}

// covers reports whether t has the pages that steps from position from on need, and those that are
// filled up to position to.
func (t *table) covers(from, to int) bool {
	if t.group.Kind == plan.PerToken {
		return t.first <= firstPage(t.group, from) && t.end() >= pagesOf(to)
	}
	has := func(pos int) bool { return pos == 0 || slices.Contains(t.after, pos) }
	return has(from) && has(to) && len(t.after) == len(t.pages)
}

// add adds t as the table of a step's next sequence.
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
