package engine

import "github.com/realizar/realizar/internal/plan"

// save has step f copy the page of group g that n has to the host's memory, where
// there is room for it.
func (e *Engine) save(f *flight, n *node, g int) {
	p := e.host[g]
	if p.available() == 0 {
		return
	}
	if len(p.free) == 0 {
		e.loseHost(p.pages[p.oldest()].node, g)
	}
	i := e.takeHost(g)
	if i == none {
		return
	}
	at := &n.places[g]
	f.batch.States = append(f.batch.States, plan.StateOp{Kind: plan.SavePage, Group: g, Page: at.page, Host: e.memory[g][i]})
	f.saves = append(f.saves, save{n, g})
	at.host, at.saved = i, f.number
	p.pages[i].node = n
	n.uses++
	p.let(i)
	e.measures.Saves++
}

// takeHost takes a page of host memory for group g, or returns none if there is none.
func (e *Engine) takeHost(g int) int32 {
	p := e.host[g]
	if len(p.free) == 0 {
		return none
	}
	i := p.take()
	if e.memory[g][i] == nil {
		size, _ := e.limits.PageBytes(e.program, g)
		memory, err := e.exe.AllocHost(size)
		if err != nil {
			p.pages[i].holders = gone // there is less memory than planned
			return none
		}
		e.memory[g][i] = memory
	}
	return i
}

// restore has step f copy the page of group g that n has in the host's memory, which
// is held for it, to one of the device's.
func (e *Engine) restore(f *flight, n *node, g int) int32 {
	at := &n.places[g]
	page := e.take(f, g)
	f.batch.States = append(f.batch.States, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: page, Host: e.memory[g][at.host]})
	at.page, at.filled = page, f.number
	e.pools[g].pages[page].node = n
	n.uses++
	e.host[g].let(at.host)
	e.measures.Restores++
	return page
}

// loseHost forgets the page of the host's memory that n has of group g.
func (e *Engine) loseHost(n *node, g int) {
	i := n.places[g].host
	n.places[g].host = none
	e.host[g].lose(i)
	e.tree.unuse(n)
}

// freeHost gives the host's memory back.
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
