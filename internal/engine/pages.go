package engine

import "github.com/realizar/realizar/internal/plan"

// A table is the pages of one group that a sequence has.
type table struct {
	first int // logical page of pages[0]
	pages []int32
}

// cover gives back pages that no token from position held on sees, and takes those
// up to position end.
func (t *table) cover(e *Engine, g, held, end int) {
	t.drop(e, g, e.program.Groups[g].FirstVisible(held)/pageTokens)
	t.grow(e, g, (end+pageTokens-1)/pageTokens)
}

// add makes t the table of a step's next sequence.
func (t *table) add(to *plan.PageTable) {
	to.Pages = append(to.Pages, t.pages...)
	to.Start = append(to.Start, int32(len(to.Pages)))
	to.First = append(to.First, int32(t.first))
}

// drop gives back the pages before logical page first. Steps under way may still
// use them: those of later owners run after these.
func (t *table) drop(e *Engine, g, first int) {
	n := min(max(0, first-t.first), len(t.pages))
	e.free[g] = append(e.free[g], t.pages[:n]...)
	t.first, t.pages = t.first+n, append(t.pages[:0], t.pages[n:]...)
}

// grow takes pages up to logical page end. They are there: the engine has made
// room for as many sequences as it lets in.
func (t *table) grow(e *Engine, g, end int) {
	for t.first+len(t.pages) < end {
		last := len(e.free[g]) - 1
		t.pages = append(t.pages, e.free[g][last])
		e.free[g] = e.free[g][:last]
	}
}
