package cpu

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// bothWaysPage is how many tokens a page of a step's own keys and values has.
const bothWaysPage = 32

// A bothWays is the keys and values of one step, laid out as those of a cache are: it
// is attended to as the past is, but for where a token's sight ends. Nodes of one
// shape share it.
type bothWays struct {
	pool  *kvPool
	pages []int32 // all, in order
	start []int32 // [S+1] first page of each sequence, in the step at hand
}

// bothWaysState is the shape of what n keeps.
func bothWaysState(n *plan.Node) plan.State {
	a := n.Attr.(plan.AttentionAttr)
	return plan.State{Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.HeadDim}
}

// bothWaysPages are the pages that a step can need.
func bothWaysPages(lim *plan.Limits) int { return lim.Tokens/bothWaysPage + min(lim.Seqs, lim.Tokens) }

func newBothWays(s plan.State, lim *plan.Limits, m *pageMemory) *bothWays {
	const float = 4
	n := bothWaysPages(lim)
	w := &bothWays{
		pool:  newKVPool(newPagePool(s, n, float*s.Width()*bothWaysPage, m), &plan.Limits{PageTokens: bothWaysPage, Cache: tensor.F32}),
		pages: make([]int32, n), start: make([]int32, 0, lim.Seqs+1),
	}
	for i := range w.pages {
		w.pages[i] = int32(i)
	}
	return w
}

// bothWaysBytes is what the pages of all shapes of p take.
func bothWaysBytes(p *plan.Program, lim *plan.Limits) int {
	seen, total := map[plan.State]bool{}, 0
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Bidirectional && !seen[bothWaysState(n)] {
			seen[bothWaysState(n)] = true
			var m pageMemory
			newBothWays(bothWaysState(n), lim, &m)
			total += m.left
		}
	}
	return total
}

// bidirectional lays the step's keys and values into pages of its own and attends to
// them.
func bidirectional(e *executable, n *plan.Node) ([]kernel, error) {
	s := bothWaysState(n)
	if e.whole[s] == nil {
		if e.whole == nil {
			e.whole = map[plan.State]*bothWays{}
		}
		e.whole[s] = newBothWays(s, &e.lim, &e.pages)
	}
	return attend(e, n, e.whole[s].pool, e.whole[s])
}

// cut gives the sequences of the step their pages.
func (w *bothWays) cut(b *plan.Batch) {
	w.start = append(w.start[:0], 0)
	for s := range b.Seqs() {
		tokens := int(b.Start[s+1] - b.Start[s])
		w.start = append(w.start, w.start[s]+int32((tokens+bothWaysPage-1)/bothWaysPage))
	}
	for _, page := range w.pages[:w.start[b.Seqs()]] {
		w.pool.page(page)
	}
}

// past is where a sequence's keys and values are.
func (w *bothWays) past(s int32) past { return past{w.pool, w.pages[w.start[s]:w.start[s+1]], 0} }
