package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// stepCachePage is the number of tokens in a page of a step's own keys and values.
const stepCachePage = 32

// A stepCache holds the keys and values of one step in the layout of the cache. Attention reads it
// like a cache; only the range of visible positions differs. Nodes of the same shape share it.
type stepCache struct {
	pool  *kvPool
	pages []int32 // all pages, in order
	start []int32 // [S+1] first page of each sequence in the current step
}

// stepCacheState returns the shape of n's keys and values.
func stepCacheState(n *plan.Node) plan.State {
	a := n.Attr.(plan.AttentionAttr)
	return plan.State{Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.HeadDim}
}

// stepCachePages returns the number of pages for any step.
func stepCachePages(lim *plan.Limits) int {
	return lim.Tokens/stepCachePage + min(lim.Seqs, lim.Tokens)
}

func newStepCache(s plan.State, lim *plan.Limits, m *pageMemory) *stepCache {
	const float = 4
	n := stepCachePages(lim)
	w := &stepCache{
		pool:  newKVPool(newPagePool(s, n, float*s.Width()*stepCachePage, m), &plan.Limits{PageTokens: stepCachePage, Cache: tensor.F32}),
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

func newStepPages(p *plan.Program, lim *plan.Limits, m *pageMemory) map[plan.State]*stepCache {
	all := map[plan.State]*stepCache{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Bidirectional && all[stepCacheState(n)] == nil {
			all[stepCacheState(n)] = newStepCache(stepCacheState(n), lim, m)
		}
	}
	return all
}

// bidirectional attends to the keys and values of the step.
type bidirectional struct{ ordinary }

// kernels stores keys and values in pages of the step.
func (bidirectional) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	whole := e.space(stepPages).(map[plan.State]*stepCache)[stepCacheState(s.Node())]
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
				e.attendHead(n, t, h, &headContext{
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
func (w *stepCache) cut(b *plan.Batch) {
	w.start = append(w.start[:0], 0)
	for s := range b.Seqs() {
		tokens := int(b.Start[s+1] - b.Start[s])
		w.start = append(w.start, w.start[s]+int32((tokens+stepCachePage-1)/stepCachePage))
	}
	for _, page := range w.pages[:w.start[b.Seqs()]] {
		w.pool.page(page)
	}
}

// past returns the pages of a sequence's keys and values.
func (w *stepCache) past(s int32) past { return past{w.pool, w.pages[w.start[s]:w.start[s+1]], 0} }
