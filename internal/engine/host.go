package engine

import "github.com/realizar/realizar/internal/plan"

// save adds a copy of n's page of group g to host memory to step f, if host memory has room.
func (e *Engine) save(f *flight, n *node, g int) {
	i := e.claimHost(g)
	if i == none {
		return
	}
	p, at := e.host[g], &n.places[g]
	f.batch.States = append(f.batch.States, plan.StateOp{Kind: plan.SavePage, Group: g, Page: at.page, Host: e.memory[g][i]})
	f.saves = append(f.saves, save{n, g})
	f.moved += e.pageBytes[g]
	at.host, at.saved = i, f.number
	p.pages[i].node = n
	n.uses++
	p.let(i, 1)
	e.event(PageStored, n, g, true)
	e.measures.Saves++
}

// claimHost takes a page of host memory for group g. It evicts the least valuable idle page if none
// is free, and returns none if there is none of these either.
func (e *Engine) claimHost(g int) int32 {
	p := e.host[g]
	if p.available() == 0 {
		return none
	}
	if len(p.free) == 0 {
		e.evictHost(p.pages[p.least()].node, g)
	}
	return e.takeHost(g)
}

// evictHost removes n's idle page of group g from host memory. Of a checkpoint it removes all slots
// that no step is about to read.
func (e *Engine) evictHost(n *node, g int) {
	if e.program.Groups[g].Kind == plan.PerSequence {
		for _, other := range e.checks.groups {
			if i := n.places[other].host; other != g && i != none && e.host[other].pages[i].holders == 0 {
				e.loseHost(n, other)
			}
		}
	}
	e.loseHost(n, g)
}

// takeHost takes a page of host memory for group g. It returns none if no page is free.
func (e *Engine) takeHost(g int) int32 {
	p := e.host[g]
	if len(p.free) == 0 {
		return none
	}
	i := p.take()
	if e.memory[g][i] == nil {
		memory, err := e.exe.AllocHost(e.pageBytes[g])
		if err != nil {
			p.pages[i].holders = gone // there is less memory than planned
			return none
		}
		e.memory[g][i] = memory
	}
	return i
}

// restore adds a copy of n's page of group g from host memory to a page of the device to step f,
// and returns that page. The caller holds the host's page.
func (e *Engine) restore(f *flight, n *node, g int) int32 {
	at := &n.places[g]
	page := e.take(f, g)
	f.batch.States = append(f.batch.States, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: page, Host: e.memory[g][at.host]})
	f.moved += e.pageBytes[g]
	at.page, at.filled = page, f.number
	e.pools[g].pages[page].node = n
	n.uses++
	e.host[g].let(at.host, 1)
	e.event(PageStored, n, g, false)
	e.measures.Restores++
	return page
}

// If other sequences are decoding, a step restores only a few bytes: those of so many pages of the
// group with the largest pages of tokens if the time of a copy is not known, otherwise what fits
// into a quarter of the gap, and at least fewestRestores of these pages.
const (
	restores       = 16
	fewestRestores = 4
	mostAhead      = 64 // steps that restore pages of a sequence before it is placed
)

// cold reports whether so many of the cached pages of s, in e.matched, are in host memory alone
// that they must be restored over several steps, because other sequences are decoding.
func (e *Engine) cold(s *sequence, pages int) bool {
	if e.config.Host == 0 || s.warmed >= mostAhead || e.queue.decoding() == 0 {
		return false
	}
	n := 0
	for g, group := range e.program.Groups {
		for _, node := range e.matched[firstPage(group, pages*pageTokens):pages] {
			if node.places[g].page == none {
				n += e.pageBytes[g]
			}
		}
	}
	return n > e.restorable()
}

// restorable returns how many bytes a step restores if other sequences are decoding. A slot may be
// larger; then a step restores it alone.
func (e *Engine) restorable() int {
	page := 1
	for g, group := range e.program.Groups {
		if group.Kind == plan.PerToken || len(e.pageBytes) == 1 {
			page = max(page, e.pageBytes[g])
		}
	}
	if e.pace.move <= 0 {
		return restores * page
	}
	return max(fewestRestores*page, int(min(e.pace.gap.Seconds()/4/e.pace.move, 1<<40)))
}

// warm adds copies to f that restore pages for a sequence without pages. The pages are held until
// the step is done. From then on they can be found.
func (e *Engine) warm(f *flight, s *sequence) {
	pages, waits := e.match(s)
	if waits {
		return
	}
	s.warmed++
	all := e.restorable()
	left := all
	for g, group := range e.program.Groups {
		keep := len(e.queue.active) // a page for each active sequence
		if group.Kind == plan.PerSequence {
			keep = min(keep, slotsOfSequence) // few steps take slots
		}
		for _, n := range e.matched[firstPage(group, pages*pageTokens):pages] {
			at := &n.places[g]
			if at.page != none || left < e.pageBytes[g] && left < all {
				continue
			}
			if at.host == none || at.saved > e.done || e.pools[g].available() <= keep {
				return // it was evicted for a page that this step restores
			}
			e.host[g].hold(at.host)
			f.restored = append(f.restored, restored{n, g, e.restore(f, n, g)})
			left -= e.pageBytes[g]
		}
	}
}

// A restored is a page that a step restores for a sequence without pages.
type restored struct {
	node  *node
	group int
	page  int32
}

// settle releases the pages that f restored, and drops their contents if f failed.
func (e *Engine) settle(f *flight, failed bool) {
	for _, r := range f.restored {
		if failed {
			e.losePage(r.node, r.group)
		}
		e.pools[r.group].let(r.page, 1)
	}
	clear(f.restored)
	f.restored = f.restored[:0]
}

// loseHost removes n's page of group g from host memory.
func (e *Engine) loseHost(n *node, g int) {
	i := n.places[g].host
	n.places[g].host = none
	e.host[g].lose(i)
	e.event(PageRemoved, n, g, true)
	e.tree.unuse(n)
}

// freeHost frees host memory.
func (e *Engine) freeHost() error {
	var first error
	for _, all := range e.memory {
		for _, memory := range all {
			if memory == nil {
				continue
			}
			if err := e.exe.FreeHost(memory); err != nil && first == nil {
				first = err
			}
		}
	}
	e.memory = nil
	return first
}
