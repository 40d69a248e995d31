package cpu

import (
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A kvPool is the pages of one state. A page holds the keys of its tokens and
// then their values, [2, pageTokens, kvHeads*headDim].
type kvPool struct {
	state      plan.State
	pageTokens int
	cols       int       // kvHeads*headDim
	f32        []float32 // one of the two is used
	f16        []uint16
}

func newKVPool(s plan.State, l *plan.Limits) *kvPool {
	k := &kvPool{state: s, pageTokens: l.PageTokens, cols: s.KVHeads * s.HeadDim}
	n := l.Pages[s.Group] * k.pageElems()
	if l.Cache == tensor.F16 {
		k.f16 = make([]uint16, n)
	} else {
		k.f32 = make([]float32, n)
	}
	return k
}

func (k *kvPool) pageElems() int { return 2 * k.pageTokens * k.cols }

// key and value are the element where the row of a token in a page begins.
func (k *kvPool) key(page int32, slot int) int {
	return int(page)*k.pageElems() + slot*k.cols
}

func (k *kvPool) value(page int32, slot int) int {
	return k.key(page, slot) + k.pageTokens*k.cols
}

// store writes x at element at and reports whether the cache can hold it.
func (k *kvPool) store(at int, x []float32) bool {
	if k.f32 != nil {
		copy(k.f32[at:], x)
		return true
	}
	const largest = 65504 // of F16
	ok := true
	for i, v := range x {
		k.f16[at+i] = tensor.F32ToF16(v)
		ok = ok && v <= largest && v >= -largest
	}
	return ok
}

// load is len(buf) values at element at: a view, or buf filled.
func (k *kvPool) load(at int, buf []float32) []float32 {
	if k.f32 != nil {
		return k.f32[at : at+len(buf)]
	}
	for i, h := range k.f16[at : at+len(buf)] {
		buf[i] = tensor.F16ToF32(h)
	}
	return buf
}

// page is the bytes of one page.
func (k *kvPool) page(i int32) []byte {
	n := k.pageElems()
	if k.f32 != nil {
		return unsafe.Slice((*byte)(unsafe.Pointer(&k.f32[int(i)*n])), 4*n)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&k.f16[int(i)*n])), 2*n)
}

// apply does one operation on the pages of a group.
func (e *executable) apply(op *plan.StateOp) {
	host := op.Host
	for _, k := range e.pools {
		if k.state.Group != op.Group {
			continue
		}
		page := k.page(op.Page)
		switch op.Kind {
		case plan.CopyPage:
			copy(page, k.page(op.From))
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
		page := table.Pages[int(table.Start[s])+pos/pool.pageTokens-int(table.First[s])]
		slot := pos % pool.pageTokens
		if !pool.store(pool.key(page, slot), e.row(n.In[1], t)) || !pool.store(pool.value(page, slot), e.row(n.In[2], t)) {
			if e.overflow[s] < 0 {
				e.overflow[s] = n.Layer
			}
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

// at is the page and the slot of position pos.
func (v *keyView) at(pos int) (int32, int) {
	return v.pages[pos/v.pageTokens-v.first], pos % v.pageTokens
}
