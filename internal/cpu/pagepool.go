package cpu

import "github.com/realizar/realizar/internal/plan"

const (
	// pageSlack is the number of extra bytes after each page, because kernels read whole registers.
	pageSlack = 64
	// slabBytes is the approximate size of the allocations from which pages are cut. The system
	// provides memory on first use.
	slabBytes = 64 << 20
)

// A pagePool is the pages of one state, or the slots of a state per sequence. A page is allocated
// on first use: memory grows with use, up to the planned size.
type pagePool struct {
	state   plan.State
	columns bool     // keys are columns though there are no values, see kvPool
	bytes   int      // size of a page
	pages   [][]byte // nil if never used; each is pageSlack bytes longer than bytes
	memory  *pageMemory
}

// newPagePool returns a pool of n pages of bytes bytes.
func newPagePool(s plan.State, n, bytes int, m *pageMemory) *pagePool {
	p := &pagePool{state: s, bytes: bytes, pages: make([][]byte, n), memory: m}
	m.left += n * p.room()
	return p
}

// room returns the bytes that a page takes in a slab.
func (p *pagePool) room() int {
	const line = 64
	return (p.bytes+line-1)/line*line + pageSlack
}

// page returns page i, allocated if need be.
func (p *pagePool) page(i int32) []byte {
	if p.pages[i] == nil {
		p.pages[i] = p.memory.take(p.room())[: p.bytes+pageSlack : p.bytes+pageSlack]
	}
	return p.pages[i]
}

// pageMemory allocates the pages of all pools of an executable from the same slabs, so that few of
// the system's large pages are used only in part.
type pageMemory struct {
	slab  []byte // memory for the next pages
	slabs [][]byte
	left  int // bytes of pages that are not yet allocated
}

// take returns memory for a page.
func (m *pageMemory) take(n int) []byte {
	if len(m.slab) < n {
		slab, err := reserve(max(n, min(slabBytes, m.left)))
		if err != nil {
			panic(err) // becomes the step's error
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

// makePools makes the pools of all states, without allocating pages.
func (e *executable) makePools() error {
	for _, s := range e.p.States {
		bytes, err := e.lim.PageOf(s)
		if err != nil {
			return err
		}
		e.pools = append(e.pools, newPagePool(s, e.lim.Pages[s.Group], bytes, &e.pages))
	}
	for i := range e.p.Nodes {
		if n := &e.p.Nodes[i]; n.Op == plan.Select {
			e.pools[n.State].columns = true
		}
	}
	e.zeros = make([]float32, largestSlot(e.p))
	return nil
}

// largestSlot returns the number of values of the largest state per sequence of p.
func largestSlot(p *plan.Program) int {
	n := 0
	for _, s := range p.States {
		n = max(n, s.Size)
	}
	return n
}

// kv returns the pool of a state per token.
func (e *executable) kv(state int) *kvPool { return newKVPool(e.pools[state], &e.lim) }

// apply runs one operation on the pages of a group.
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

// reachSlots allocates the slots of the current step.
func (e *executable) reachSlots() {
	for _, p := range e.pools {
		if p.state.Kind == plan.PerSequence {
			e.reach(p)
		}
	}
}

// reach allocates the pages of the current step.
func (e *executable) reach(p *pagePool) {
	for _, i := range e.batch.Tables[p.state.Group].Pages {
		if i >= 0 {
			p.page(i)
		}
	}
}

// slots returns the slots of sequence s for a state per sequence [Size]. in is the state before the
// step, which is read-only. The step must write all of out, unless it is nil: then the step does not
// reach the next state, see [plan.Group.Taken].
func (e *executable) slots(state int, s int32) (in, out []float32) {
	p := e.pools[state]
	from, to := e.batch.Tables[p.state.Group].Slots(int(s))
	if in = e.zeros; from >= 0 {
		in = words[float32](p.pages[from])
	}
	if to >= 0 {
		out = words[float32](p.pages[to])[:p.state.Size]
	}
	return in[:p.state.Size], out
}
