package engine

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// Check verifies the engine's bookkeeping: every page is held as often as it is in tables, and is
// free or found by its tokens; every node of the history tree is used; the queues are in order. It
// takes time in proportion to all pages. Any goroutine may call it at any time.
func (e *Engine) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := checker{e: e, holders: make([][]int32, len(e.pools)), uses: map[*node]int{}}
	for g, p := range e.pools {
		c.holders[g] = make([]int32, p.size())
	}
	c.queue()
	for _, s := range e.queue.active {
		c.sequence(s)
	}
	flights := slices.Clone(e.flights)
	if e.begins != nil && !slices.Contains(flights, e.begins) {
		flights = append(flights, e.begins)
	}
	for _, f := range flights {
		for _, r := range f.restored {
			if c.holders[r.group][r.page]++; r.node.places[r.group].page != r.page {
				c.wrong("group %d: page %d is restored for a history that has another", r.group, r.page)
			}
		}
	}
	host := c.copies()
	for g := range e.pools {
		c.pool("page", g, e.pools[g], c.holders[g], func(n *node) int32 { return n.places[g].page })
		c.pool("page of the host's", g, e.host[g], host[g], func(n *node) int32 { return n.places[g].host })
	}
	c.tree()
	c.masks()
	return c.err
}

type checker struct {
	e       *Engine
	holders [][]int32     // by group and page: the number of tables with the page
	uses    map[*node]int // by sequences, children and pages
	err     error
}

func (c *checker) wrong(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("engine: "+format, a...)
	}
}

func (c *checker) queue() {
	q := &c.e.queue
	if len(q.active) > q.most {
		c.wrong("%d sequences have places, of %d", len(q.active), q.most)
	}
	waits, places := map[turn]int{}, map[turn]int{}
	for _, all := range [][]*sequence{q.active, q.waiting} {
		if !slices.IsSortedFunc(all, (*sequence).before) {
			c.wrong("the queue is out of order")
		}
	}
	for _, s := range q.active {
		if places[s.turn()]++; !s.active || s.over {
			c.wrong("sequence %d has a place and is not at work", s.number)
		}
	}
	for _, s := range q.waiting {
		if waits[s.turn()]++; s.active || s.over || s.placed {
			c.wrong("sequence %d waits and is at work, or over", s.number)
		}
	}
	for turn, a := range q.shares {
		if a.waits != waits[turn] || a.places != places[turn] {
			c.wrong("of a turn %d wait and %d have places, %d and %d are counted", waits[turn], places[turn], a.waits, a.places)
		}
		delete(places, turn)
	}
	if len(places) > 0 {
		c.wrong("%d turns have places and no share", len(places))
	}
	if len(waits) != q.lacking {
		c.wrong("sequences of %d turns wait, of %d are counted", len(waits), q.lacking)
	}
	if len(c.e.flights) > stepsAhead {
		c.wrong("%d steps are under way", len(c.e.flights))
	}
}

func (c *checker) sequence(s *sequence) {
	e := c.e
	if !s.placed {
		for g := range s.tables {
			if len(s.tables[g].pages) > 0 || len(s.path) > 0 {
				c.wrong("sequence %d has pages and no place for them", s.number)
			}
		}
		return
	}
	if s.done > s.sent || s.sent > len(s.tokens)+max(1, s.inFlight()) || len(s.path) == 0 || (len(s.path)-1)*pageTokens > s.sent {
		c.wrong("sequence %d has done %d of %d positions submitted, knows %d tokens, and %d histories", s.number, s.done, s.sent, len(s.tokens), len(s.path))
		return
	}
	for i, n := range s.path {
		if c.uses[n]++; i > 0 && (n.parent != s.path[i-1] || !slices.Equal(n.key.tokens[:], s.page(i-1))) {
			c.wrong("sequence %d is not of its history at page %d", s.number, i-1)
		}
	}
	if !slices.IsSorted(s.forks) || s.trail/pageTokens >= len(s.path) {
		c.wrong("sequence %d leaves checkpoints after %v tokens, and left one after %d, of %d histories", s.number, s.forks, s.trail, len(s.path))
	}
	for g, group := range e.program.Groups {
		t := &s.tables[g]
		if !slices.IsSorted(t.after) {
			c.wrong("sequence %d has states of group %d after %v tokens", s.number, g, t.after)
		}
		from := s.done
		if t.passing {
			from = s.sent
		}
		if !t.covers(from, s.sent) || len(t.pages) > e.config.most(group, t.passing) {
			c.wrong("sequence %d has %d pages of group %d from %d on, states after %d positions, has done %d and submitted %d", s.number, len(t.pages), g, t.first, t.after, s.done, s.sent)
		}
		for k, page := range t.pages {
			c.holders[g][page]++
			n := e.pools[g].pages[page].node
			if at := t.history(k); n != nil && (at >= len(s.path) || s.path[at] != n) {
				c.wrong("sequence %d has page %d of group %d, which is of another history", s.number, page, g)
			}
		}
	}
}

// copies counts the pages and histories of exports and imports. It returns the holders of host
// pages.
func (c *checker) copies() [][]int32 {
	e := c.e
	host := make([][]int32, len(e.host))
	for g, p := range e.host {
		host[g] = make([]int32, p.size())
	}
	for g, page := range e.scratch {
		c.holders[g][page]++
	}
	for _, x := range e.exports {
		for i := range x.held {
			h := &x.held[i]
			if c.uses[h.node]++; h.device != none {
				c.holders[h.group][h.device]++
			}
			if h.host != none {
				host[h.group][h.host]++
			}
		}
	}
	for _, in := range e.imports {
		for _, a := range in.list {
			host[a.group][a.host]++
		}
	}
	return host
}

// pool checks p. tables holds the number of tables by page; of returns a node's page in p.
func (c *checker) pool(what string, g int, p *pool, tables []int32, of func(*node) int32) {
	free, idle := 0, 0
	for i := range p.size() {
		at := &p.pages[i]
		if at.holders == gone {
			continue
		}
		if at.holders != tables[i] {
			c.wrong("group %d: %s %d is held %d times, and in %d tables", g, what, i, at.holders, tables[i])
		}
		if at.node != nil && of(at.node) != int32(i) {
			c.wrong("group %d: %s %d is found by a history that has %d", g, what, i, of(at.node))
		}
		switch {
		case at.holders > 0:
		case at.node != nil:
			idle++
		default:
			free++
		}
	}
	if free != len(p.free) || idle != p.idle {
		c.wrong("group %d: of each %s %d are free and %d idle, %d and %d are counted", g, what, free, idle, len(p.free), p.idle)
	}
	listed := 0
	for list := range int32(lists) {
		end, worth := p.end(list), 0.0
		for i := p.pages[end].next; i != end && listed <= p.idle; i = p.pages[i].next {
			at := &p.pages[i]
			own := int32(at.cost)
			if at.spare {
				own = spares
			}
			if listed++; at.holders != 0 || at.node == nil || p.pages[at.next].prev != i || own != list || at.worth < worth && !at.spare {
				c.wrong("group %d: %s %d is listed as idle", g, what, i)
			}
			worth = at.worth
		}
	}
	if listed != p.idle {
		c.wrong("group %d: %d idle pages are listed, %d counted", g, listed, p.idle)
	}
	seen := map[int32]bool{}
	for _, i := range p.free {
		if seen[i] || p.pages[i].holders != 0 || p.pages[i].node != nil {
			c.wrong("group %d: %s %d is free and used", g, what, i)
		}
		seen[i] = true
	}
}

// masks checks that no mask changes while a step in flight uses it, and that each mask is found at
// its id.
func (c *checker) masks() {
	e := c.e
	uses := make([]int, len(e.masks.slots))
	for _, f := range e.flights {
		if f == e.begins {
			continue // it is about to sample
		}
		for _, id := range f.masks {
			uses[id-1]++
		}
	}
	if f := e.begins; f != nil {
		for _, fill := range f.fills {
			if uses[fill.id-1] > 0 {
				c.wrong("mask %d is set, and a step under way uses it", fill.id)
			}
		}
		for _, id := range f.masks {
			uses[id-1]++
		}
	}
	found := 0
	for i, at := range e.masks.slots {
		if at.uses != uses[i] {
			c.wrong("mask %d is used %d times, %d are counted", i+1, uses[i], at.uses)
		}
		if at.mask == nil {
			continue
		}
		if found++; e.masks.ids[at.mask] != int32(i+1) {
			c.wrong("mask %d is found as %d", i+1, e.masks.ids[at.mask])
		}
	}
	if found != len(e.masks.ids) {
		c.wrong("%d masks are found, and %d are there", len(e.masks.ids), found)
	}
}

// depth returns the number of pages of n's history.
func (c *checker) depth(n *node) (pages int) {
	for ; n.parent != nil; n = n.parent {
		pages++
	}
	return pages
}

func (c *checker) tree() {
	e := c.e
	var all []*node
	children := map[*node]int{}
	for n := range e.tree.all {
		all = append(all, n)
		if e.tree.child(n.parent, n.key.tokens[:]) != n {
			c.wrong("a history is not found by its tokens")
		}
		c.uses[n.parent]++
		children[n.parent]++
		for g := range n.places {
			at := &n.places[g]
			if at.page != none {
				if c.uses[n]++; e.pools[g].pages[at.page].node != n {
					c.wrong("group %d: a history has page %d, which is of another", g, at.page)
				}
				if at.filled > e.done && e.pools[g].pages[at.page].holders == 0 {
					c.wrong("group %d: page %d is idle, and under way", g, at.page)
				}
				if group := e.program.Groups[g]; e.checks.passing(group) {
					c.wrong("group %d: page %d of those that only pass is found", g, at.page)
				} else if group.Kind == plan.PerSequence && c.depth(n)*pageTokens%e.checks.every != 0 {
					c.wrong("group %d: slot %d is found after %d pages", g, at.page, c.depth(n))
				}
			}
			if at.host != none {
				if c.uses[n]++; e.host[g].pages[at.host].node != n {
					c.wrong("group %d: a history has page %d of the host's, which is of another", g, at.host)
				}
			}
		}
	}
	for _, n := range e.tree.beginnings {
		all = append(all, n)
	}
	for _, n := range all {
		if n.uses != c.uses[n] || n.uses == 0 {
			c.wrong("history %d is used %d times, %d are counted", n.id, c.uses[n], n.uses)
		}
		if n.children != children[n] {
			c.wrong("history %d goes on in %d ways, %d are counted", n.id, children[n], n.children)
		}
		delete(c.uses, n)
	}
	if len(c.uses) > 0 {
		c.wrong("%d histories are used and cannot be found", len(c.uses))
	}
}
