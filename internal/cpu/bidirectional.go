package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// bothWaysPage is the number of tokens in a page of a step's own keys and values.
const bothWaysPage = 32

// A bothWays holds the keys and values of one step in the layout of the cache. Attention reads it
// like a cache; only the range of visible positions differs. Nodes of the same shape share it.
type bothWays struct {
	pool  *kvPool
	pages []int32 // all pages, in order
	start []int32 // [S+1] first page of each sequence in the current step
}

// bothWaysState returns the shape of n's keys and values.
func bothWaysState(n *plan.Node) plan.State {
	a := n.Attr.(plan.AttentionAttr)
	return plan.State{Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.HeadDim}
}

// bothWaysPages returns the number of pages for any step.
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

// stepPages holds the pages for all shapes of a program.
var stepPages = &space{
	bytes: func(_ *Backend, p *plan.Program, lim *plan.Limits) int {
		var m pageMemory
		newStepPages(p, lim, &m)
		return m.left
	},
	make: func(e *executable) any { return newStepPages(e.p, &e.lim, &e.pages) },
}

func newStepPages(p *plan.Program, lim *plan.Limits, m *pageMemory) map[plan.State]*bothWays {
	all := map[plan.State]*bothWays{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Bidirectional && all[bothWaysState(n)] == nil {
			all[bothWaysState(n)] = newBothWays(bothWaysState(n), lim, m)
		}
	}
	return all
}

// bidirectional attends to the keys and values of the step.
type bidirectional struct{ ordinary }

// kernels stores keys and values in pages of the step.
func (bidirectional) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	whole := e.space(stepPages).(map[plan.State]*bothWays)[bothWaysState(s.Node())]
	return attend(e, s.Node(), whole.pool, whole)
}

// reference attends to the tokens of the step.
func (bidirectional) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.AttentionAttr)
	return []kernel{{size: func() int { return len(e.seq) }, run: func(_, from, to int) {
		for t := from; t < to; t++ {
			lo, hi := int(e.batch.Start[e.seq[t]]), int(e.batch.Start[e.seq[t]+1])
			if a.Window > 0 {
				lo, hi = max(lo, t+1-a.Window), min(hi, t+a.Window)
			}
			for h := range a.Heads {
				g := h / (a.Heads / a.KVHeads) * a.HeadDim
				e.attendHead(n, t, h, &sight{
					n: hi - lo, cache: tensor.F32,
					key:   func(i int) []float32 { return e.row(n.In[1], lo+i)[g:][:a.HeadDim] },
					value: func(i int) []float32 { return e.row(n.In[2], lo+i)[g:][:a.HeadDim] },
				}, &a)
			}
			e.wrote(n.Out, t, 0, a.Heads*a.HeadDim)
		}
	}}}, nil
}

func (bidirectional) pieces(n *plan.Node) int { return groupWidth(n) }

func (bidirectional) spaces() []*space { return []*space{attentionWork, stepPages} }

// cut assigns pages to the sequences of the step.
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

// past returns the pages of a sequence's keys and values.
func (w *bothWays) past(s int32) past { return past{w.pool, w.pages[w.start[s]:w.start[s+1]], 0} }
