package engine

const (
	none = int32(-1) // is no page
	gone = int32(-1) // holders of a page for which there is no memory
)

// A pool is the pages of one group of states, on the device or in the host's
// memory. A page is free; or held, by sequences that have it in their tables or by
// what is about to read it; or idle: held by nobody, but found by the tokens whose
// states it has, until its place is needed.
type pool struct {
	pages []page // and one more, between the newest and the oldest that are idle
	free  []int32
	idle  int // pages that are
}

type page struct {
	holders    int32
	node       *node // that it can be found by, or nil
	prev, next int32 // of the idle ones: less recently used, and more
}

func newPool(n int) *pool {
	p := &pool{pages: make([]page, n+1), free: make([]int32, n)}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	end := int32(n)
	p.pages[end] = page{prev: end, next: end}
	return p
}

// size is the number of pages.
func (p *pool) size() int { return len(p.pages) - 1 }

// available is how many pages can be taken.
func (p *pool) available() int { return len(p.free) + p.idle }

// oldest is the idle page that was not used for the longest time, or none.
func (p *pool) oldest() int32 {
	if p.idle == 0 {
		return none
	}
	return p.pages[p.size()].next
}

// take is a page that is free now, held once. There must be one.
func (p *pool) take() int32 {
	last := len(p.free) - 1
	i := p.free[last]
	p.free = p.free[:last]
	p.pages[i].holders = 1
	return i
}

// hold says that one more holds page i.
func (p *pool) hold(i int32) {
	if p.pages[i].holders == 0 {
		p.unlink(i)
	}
	p.pages[i].holders++
}

// let says that one who held page i does no longer.
func (p *pool) let(i int32) {
	at := &p.pages[i]
	if at.holders--; at.holders > 0 {
		return
	}
	if at.node == nil {
		p.free = append(p.free, i)
		return
	}
	end := int32(p.size())
	at.prev, at.next = p.pages[end].prev, end
	p.pages[at.prev].next = i
	p.pages[end].prev = i
	p.idle++
}

// lose says that page i cannot be found any longer.
func (p *pool) lose(i int32) {
	at := &p.pages[i]
	if at.node = nil; at.holders == 0 {
		p.unlink(i)
		p.free = append(p.free, i)
	}
}

// unlink takes page i out of the idle ones.
func (p *pool) unlink(i int32) {
	at := &p.pages[i]
	p.pages[at.prev].next, p.pages[at.next].prev = at.next, at.prev
	p.idle--
}
