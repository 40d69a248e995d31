package cpu

import "github.com/realizar/realizar/internal/plan"

const (
	// pageSlack bytes lie behind each page: kernels read whole registers.
	pageSlack = 64
	// slabBytes is about how much memory pages are taken from at a time. Of most of it
	// nothing is there before it is used.
	slabBytes = 64 << 20
)

// A pagePool is the pages of one state; of one per sequence, its slots. Pages are
// allocated when they are first used: memory follows use up to what was planned.
type pagePool struct {
	state  plan.State
	bytes  int      // of a page
	pages  [][]byte // nil where nobody has used it; each has pageSlack more than bytes
	memory *pageMemory
}

// newPagePool is a pool of n pages of so many bytes.
func newPagePool(s plan.State, n, bytes int, m *pageMemory) *pagePool {
	p := &pagePool{state: s, bytes: bytes, pages: make([][]byte, n), memory: m}
	m.left += n * p.room()
	return p
}

// room is what a page takes of memory.
func (p *pagePool) room() int {
	const line = 64
	return (p.bytes+line-1)/line*line + pageSlack
}

// page is page i, allocated.
func (p *pagePool) page(i int32) []byte {
	if p.pages[i] == nil {
		p.pages[i] = p.memory.take(p.room())[: p.bytes+pageSlack : p.bytes+pageSlack]
	}
	return p.pages[i]
}

// pageMemory allocates the pages of all pools of an executable, one after the other from the
// same slabs, so that few of the system's large pages are used in part only.
type pageMemory struct {
	slab  []byte // what the next pages are cut from
	slabs [][]byte
	left  int // bytes of the pages that have not been made
}

// take is memory for a page.
func (m *pageMemory) take(n int) []byte {
	if len(m.slab) < n {
		slab, err := reserve(max(n, min(slabBytes, m.left)))
		if err != nil {
			panic(err) // the step ends with it
		}
		m.slab, m.slabs = slab, append(m.slabs, slab)
	}
	p := m.slab[:n:n]
	m.slab = m.slab[n:]
	m.left -= n
	return p
}

func (m *pageMemory) release() {
	for _, s := range m.slabs {
		release(s)
	}
}

// makePools makes the pools of all states, with no page allocated.
func (e *executable) makePools() error {
	for _, s := range e.p.States {
		bytes, err := e.lim.PageOf(s)
		if err != nil {
			return err
		}
		e.pools = append(e.pools, newPagePool(s, e.lim.Pages[s.Group], bytes, &e.pages))
	}
	e.zeros = make([]float32, largestSlot(e.p))
	return nil
}

// largestSlot is how many values the largest state per sequence of p has.
func largestSlot(p *plan.Program) int {
	n := 0
	for _, s := range p.States {
		n = max(n, s.Size)
	}
	return n
}

// kv is the pool of a state per token.
func (e *executable) kv(state int) *kvPool { return newKVPool(e.pools[state], &e.lim) }

// apply does one operation on the pages of a group.
func (e *executable) apply(op *plan.StateOp) {
	host := op.Host
	for _, p := range e.pools {
		if p.state.Group != op.Group {
			continue
		}
		page := p.page(op.Page)[:p.bytes]
		switch op.Kind {
		case plan.SavePage:
			host = host[copy(host, page):]
		case plan.RestorePage:
			host = host[copy(page, host):]
		}
	}
}

// reachSlots allocates the slots of the step at hand.
func (e *executable) reachSlots() {
	for _, p := range e.pools {
		if p.state.Kind == plan.PerSequence {
			e.reach(p)
		}
	}
}

// reach allocates the pages of the step at hand.
func (e *executable) reach(p *pagePool) {
	for _, i := range e.batch.Tables[p.state.Group].Pages {
		if i >= 0 {
			p.page(i)
		}
	}
}

// slots are a state per sequence [Size] of sequence s in the step at hand: in, as it is
// before the step, which is not to be written, and out, all of which the step is to
// write.
func (e *executable) slots(state int, s int32) (in, out []float32) {
	p := e.pools[state]
	from, to := e.batch.Tables[p.state.Group].Slots(int(s))
	if in = e.zeros; from >= 0 {
		in = words[float32](p.pages[from])
	}
	return in[:p.state.Size], words[float32](p.pages[to])[:p.state.Size]
}
