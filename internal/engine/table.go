package engine

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// This file has the differences between the kinds of groups: which pages a sequence has, which it
// needs to continue, and which of them others may find.

// slotsOfSequence is the most slots of a sequence: one that its oldest step in flight reads, and
// one that each of its steps writes.
const slotsOfSequence = 1 + stepsAhead

// pagesOf returns how many pages hold n positions.
func pagesOf(n int) int { return (n + pageTokens - 1) / pageTokens }

// firstPage returns the first page that a token at pos needs. In a group of states per sequence,
// page i is the state after the tokens of page i.
func firstPage(g plan.Group, pos int) int { return g.FirstVisible(pos) / pageTokens }

// passing reports whether no sequence begins with pages of group g: they hold what follows a
// multiple of Chunk, and sequences begin at checkpoints, which all are such multiples.
func (c checkpoints) passing(g plan.Group) bool {
	return g.Chunk > 0 && c.every%g.Chunk == 0 && c.every > 0
}

// most returns the most pages of group g for one sequence. What a token sees lags by the steps in
// flight. Pages that only pass are free for the next step when a step has filled them.
func (c Config) most(g plan.Group, passing bool) int {
	switch {
	case writtenAlways(g) && c.Follows:
		return slotsOfSequence + 1 // and one to go back to
	case g.Kind == plan.PerSequence:
		return slotsOfSequence
	case passing:
		return c.span(g, c.chunk())
	}
	return c.span(g, stepsAhead*c.chunk())
}

// span returns the most pages of group g that hold what a token of a sequence sees and n tokens
// from there on, itself included. If that starts in one page and ends in another, it has one page
// more than its length.
func (c Config) span(g plan.Group, n int) int {
	all := pagesOf(c.Context)
	switch {
	case g.KeepsAll():
		return all
	case g.Chunk > 0 && g.Chunk%pageTokens == 0:
		return min(all, pagesOf(g.Chunk-1+n))
	}
	return min(all, pagesOf(max(g.Window, g.Chunk)-1+n)+1)
}

// steady returns how many pages of group g each of several sequences needs in any case: to decode,
// if others use what there is for prompts.
func (c Config) steady(g plan.Group) int {
	switch {
	case g.Kind == plan.PerToken:
		return c.span(g, 1)
	case g.Every > 0:
		return 2 // one to read and one to write, which few steps do
	}
	return c.most(g, false)
}

// share returns the pages of group g for sequences that are that many pages of tokens long,
// without checkpoints. Pages that only pass are for all prompts of a step together.
func (c Config) share(k checkpoints, g plan.Group, pages int) int {
	switch {
	case pages == 0:
		return 0
	case g.Kind == plan.PerSequence:
		return c.Parallel * c.steady(g)
	case k.passing(g):
		return min(c.Parallel*min(pages, c.most(g, true)), c.Parallel*c.steady(g)+pagesOf(c.prompts()))
	}
	return c.Parallel * min(pages, c.most(g, false))
}

// need returns how many pages of group g a sequence has that continues from that many pages of
// tokens to position end.
func (c Config) need(g plan.Group, passing bool, pages, end int) int {
	if g.Kind == plan.PerSequence {
		return c.steady(g)
	}
	first := firstPage(g, pages*pageTokens)
	return min(pagesOf(end), first+c.most(g, passing)) - first
}

// A table holds a sequence's pages of one group. For states per token these are consecutive pages
// from first on. For states per sequence each page is a slot with the state after some number of
// tokens: every step reads the last one, and writes a new one if it reaches the next such number.
type table struct {
	group   plan.Group
	passing bool // see [checkpoints.passing]
	first   int  // for states per token: logical page of pages[0]
	pages   []int32
	after   []int // for states per sequence: pages[i] is the state after that many tokens
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
		t.after = append(t.after, t.group.Taken(end))
	}
}

// lacks returns how many more pages a step to position end needs.
func (t *table) lacks(end int) int {
	if t.group.Kind == plan.PerToken {
		return max(0, pagesOf(end)-t.end())
	}
	if last := len(t.after) - 1; t.group.Taken(end) == 0 || last >= 0 && t.after[last] >= t.group.Taken(end) {
		return 0
	}
	return 1
}

// end returns the logical page after the last, for states per token.
func (t *table) end() int { return t.first + len(t.pages) }

// waits reports whether the pages that t lacks become free when steps in flight of its own sequence
// are done.
func (t *table) waits() bool { return t.group.Kind == plan.PerSequence }

// past returns how many of the first pages are not needed by steps that continue from position pos
// or later.
func (t *table) past(pos int) int {
	if t.group.Kind == plan.PerSequence {
		n, _ := slices.BinarySearch(t.after, t.group.Taken(pos))
		return n
	}
	return min(max(0, firstPage(t.group, pos)-t.first), len(t.pages))
}

// drop removes the pages from first up to end, which for states per token are the first ones.
func (t *table) drop(first, end int) {
	t.pages = slices.Delete(t.pages, first, end)
	if t.group.Kind == plan.PerSequence {
		t.after = slices.Delete(t.after, first, end)
	} else {
		t.first += end - first
	}
}

// found returns the page under which page i of the tokens can be cached, or none, for states per
// token.
func (t *table) found(i int) int32 {
	if i < t.first || t.passing {
		return none
	}
	return t.pages[i-t.first]
}

// slot returns the slot with the state after that many tokens, or none.
func (t *table) slot(after int) int32 {
	if k, found := slices.BinarySearch(t.after, after); found {
		return t.pages[k]
	}
	return none
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
	has := func(pos int) bool { return t.group.Taken(pos) == 0 || t.slot(t.group.Taken(pos)) != none }
	return has(from) && has(to) && len(t.after) == len(t.pages)
}

// add adds t as the table of a step's next sequence, which runs from position start to end.
func (t *table) add(to *plan.PageTable, start, end int) {
	if t.group.Kind == plan.PerToken {
		to.Add(t.first, t.pages...)
		return
	}
	in, out := t.slot(t.group.Taken(start)), none
	if t.group.Taken(end) > t.group.Taken(start) {
		out = t.slot(t.group.Taken(end))
	}
	to.AddSlots(in, out)
}
