package engine

import "math"

const (
	none = int32(-1) // no page
	gone = int32(-1) // holders of a page that has no memory
)

// A pool holds the pages of one group of states, on the device or in host memory. A page is free;
// or held, by the tables of sequences or by a copy that is about to read it; or idle: not held, but
// cached under its tokens until its memory is needed.
//
// The least valuable idle page is evicted (Greedy-Dual-Size-Frequency; Cherkasova, 1998). A page
// that becomes idle is worth the cost to recompute it plus the value of the page evicted last, so
// unused pages lose value over time. Costs are powers of two, and each cost has a list in the order
// of value.
type pool struct {
	pages []page // and a list head for each cost, between its newest and its oldest idle page
	free  []int32
	idle  int     // number of idle pages
	worth float64 // of the page evicted last
}

// costs is the number of costs: 1, 2, 4 and so on up to 32.
const costs = 6

type page struct {
	holders    int32
	found      int32 // how often it was found
	node       *node // that it is cached under, or nil
	prev, next int32 // in the list of its cost: less and more recently used
	cost       uint8 // the binary logarithm
	worth      float64
}

func newPool(n int) *pool {
	p := &pool{pages: make([]page, n+costs), free: make([]int32, n)}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	for end := int32(n); int(end) < len(p.pages); end++ {
		p.pages[end] = page{prev: end, next: end}
	}
	return p
}

// size returns the number of pages.
func (p *pool) size() int { return len(p.pages) - costs }

// available returns how many pages are free or idle.
func (p *pool) available() int { return len(p.free) + p.idle }

// least returns the least valuable idle page, which the caller evicts. There must be one.
func (p *pool) least() int32 {
	found := none
	for cost := range int32(costs) {
		end := int32(p.size()) + cost
		if i := p.pages[end].next; i != end && (found == none || p.pages[i].worth < p.pages[found].worth) {
			found = i
		}
	}
	p.worth = p.pages[found].worth
	return found
}

// take returns a free page, held once. There must be one.
func (p *pool) take() int32 {
	last := len(p.free) - 1
	i := p.free[last]
	p.free = p.free[:last]
	p.pages[i].holders, p.pages[i].found, p.pages[i].cost = 1, 0, 0
	return i
}

// hold adds a holder to page i.
func (p *pool) hold(i int32) {
	if p.pages[i].holders == 0 {
		p.unlink(i)
	}
	p.pages[i].holders++
	p.pages[i].found++
}

// let removes a holder of page i. cost is the cost to recompute it, which counts once more for each
// time that the page was found. A page's cost never falls, so that shared beginnings are not
// evicted before what follows them.
func (p *pool) let(i int32, cost float64) {
	at := &p.pages[i]
	if at.holders--; at.holders > 0 {
		return
	}
	if at.node == nil {
		p.free = append(p.free, i)
		return
	}
	at.cost = max(at.cost, uint8(min(max(0, math.Ilogb(cost*float64(1+at.found))), costs-1)))
	at.worth = p.worth + float64(uint(1)<<at.cost)
	end := int32(p.size()) + int32(at.cost)
	at.prev, at.next = p.pages[end].prev, end
	p.pages[at.prev].next = i
	p.pages[end].prev = i
	p.idle++
}

// lose removes page i from its node.
func (p *pool) lose(i int32) {
	at := &p.pages[i]
	if at.node = nil; at.holders == 0 {
		p.unlink(i)
		p.free = append(p.free, i)
	}
}

// unlink removes page i from the list of idle pages.
func (p *pool) unlink(i int32) {
	at := &p.pages[i]
	p.pages[at.prev].next, p.pages[at.next].prev = at.next, at.prev
	p.idle--
}
