package engine

import "math"

const (
	none = int32(-1) // is no page
	gone = int32(-1) // holders of a page for which there is no memory
)

// A pool is the pages of one group of states, on the device or in the host's
// memory. A page is free; or held, by sequences that have it in their tables or by
// what is about to read it; or idle: held by nobody, but found by the tokens whose
// states it has, until its place is needed.
//
// Which of the idle ones goes is said by how long nobody has used it and by what it would cost
// (Greedy-Dual-Size-Frequency; Cherkasova, 1998): when a page becomes idle it is worth its cost
// beside what the page was worth that went last, and the one goes that is worth the least. Costs are
// powers of two, so that there is a list for each, in the order of worth.
type pool struct {
	pages []page // and one more for each cost, between the newest and the oldest of it that are idle
	free  []int32
	idle  int     // pages that are
	worth float64 // of the page that went last
}

// costs is how many costs there are: 1, 2, 4 and so on up to 32.
const costs = 6

type page struct {
	holders    int32
	found      int32 // how often it was
	node       *node // that it can be found by, or nil
	prev, next int32 // of the idle ones of its cost: less recently used, and more
	cost       uint8 // the logarithm
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

// size is the number of pages.
func (p *pool) size() int { return len(p.pages) - costs }

// available is how many pages can be taken.
func (p *pool) available() int { return len(p.free) + p.idle }

// least is the idle page that is worth the least, which goes now. There must be one.
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

// take is a page that is free now, held once. There must be one.
func (p *pool) take() int32 {
	last := len(p.free) - 1
	i := p.free[last]
	p.free = p.free[:last]
	p.pages[i].holders, p.pages[i].found, p.pages[i].cost = 1, 0, 0
	return i
}

// hold says that one more holds page i.
func (p *pool) hold(i int32) {
	if p.pages[i].holders == 0 {
		p.unlink(i)
	}
	p.pages[i].holders++
	p.pages[i].found++
}

// let says that one who held page i does no longer. To make it again costs so much, and as much
// for each time that it was found. It never costs less than it did, so that what others begin with
// does not go before these.
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
