package cpu

import (
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A kvPool is the pages of one state. A page holds the keys of its tokens and
// then their values, [2, pageTokens, kvHeads*headDim]. It is allocated when it is
// first used: memory follows use up to what was planned.
type kvPool struct {
	state      plan.State
	pageTokens int
	cols       int // kvHeads*headDim
	half       bool
	pages      []kvPage
}

// A kvPage is one page; one of the two is used.
type kvPage struct {
	f32 []float32
	f16 []uint16
}

func newKVPool(s plan.State, l *plan.Limits) *kvPool {
	return &kvPool{
		state: s, pageTokens: l.PageTokens, cols: s.KVHeads * s.HeadDim,
		half: l.Cache == tensor.F16, pages: make([]kvPage, l.Pages[s.Group]),
	}
}

// page is page i, allocated.
func (k *kvPool) page(i int32) *kvPage {
	p := &k.pages[i]
	if n := 2 * k.pageTokens * k.cols; k.half && p.f16 == nil {
		p.f16 = make([]uint16, n)
	} else if !k.half && p.f32 == nil {
		p.f32 = make([]float32, n)
	}
	return p
}

// value is where in a page the values begin.
func (k *kvPool) value() int { return k.pageTokens * k.cols }

// store writes x at element at and reports whether the page can hold it.
func (p *kvPage) store(at int, x []float32) bool {
	if p.f32 != nil {
		copy(p.f32[at:], x)
		return true
	}
	const largest = 65504 // of F16
	ok := true
	for i, v := range x {
		p.f16[at+i] = tensor.F32ToF16(v)
		ok = ok && v <= largest && v >= -largest
	}
	return ok
}

// load is len(buf) values at element at: a view, or buf filled.
func (p *kvPage) load(at int, buf []float32) []float32 {
	if p.f32 != nil {
		return p.f32[at : at+len(buf)]
	}
	for i, h := range p.f16[at : at+len(buf)] {
		buf[i] = tensor.F16ToF32(h)
	}
	return buf
}

// bytes are the page's, as they lie in memory.
func (p *kvPage) bytes() []byte {
	if p.f32 != nil {
		return unsafe.Slice((*byte)(unsafe.Pointer(&p.f32[0])), 4*len(p.f32))
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&p.f16[0])), 2*len(p.f16))
}

// apply does one operation on the pages of a group.
func (e *executable) apply(op *plan.StateOp) {
	host := op.Host
	for _, k := range e.pools {
		if k.state.Group != op.Group {
			continue
		}
		page := k.page(op.Page).bytes()
		switch op.Kind {
		case plan.CopyPage:
			copy(page, k.page(op.From).bytes())
		case plan.ZeroPage:
			clear(page)
		case plan.SavePage:
			host = host[copy(host, page):]
		case plan.RestorePage:
			host = host[copy(page, host):]
		}
	}
}

// storeKV writes the step's keys and values to their pages.
func (e *executable) storeKV(n *plan.Node) {
	pool := e.pools[n.State]
	table := &e.batch.Tables[pool.state.Group]
	for t, s := range e.seq {
		pos := int(e.batch.Positions[t])
		page := pool.page(table.Pages[int(table.Start[s])+pos/pool.pageTokens-int(table.First[s])])
		slot := pos % pool.pageTokens * pool.cols
		keys, values := page.store(slot, e.row(n.In[1], t)), page.store(pool.value()+slot, e.row(n.In[2], t))
		if (!keys || !values) && e.overflow[s] < 0 {
			e.overflow[s] = n.Layer
		}
	}
}

// A keyView finds the keys and values of one sequence's past.
type keyView struct {
	*kvPool
	pages []int32
	first int // logical page of pages[0]
}

func (e *executable) view(n *plan.Node, s int32) keyView {
	pool := e.pools[n.State]
	table := &e.batch.Tables[pool.state.Group]
	return keyView{pool, table.Pages[table.Start[s]:table.Start[s+1]], int(table.First[s])}
}

// key and value are len(buf) elements, from element at of its row on, of the key
// or the value at position pos.
func (v *keyView) key(pos, at int, buf []float32) []float32 {
	return v.page(pos).load(pos%v.pageTokens*v.cols+at, buf)
}

func (v *keyView) value(pos, at int, buf []float32) []float32 {
	return v.page(pos).load(v.kvPool.value()+pos%v.pageTokens*v.cols+at, buf)
}

func (v *keyView) page(pos int) *kvPage {
	return &v.kvPool.pages[v.pages[pos/v.pageTokens-v.first]]
}
