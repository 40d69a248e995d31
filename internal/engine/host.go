package engine

import "github.com/realizar/realizar/internal/plan"

// save has step f copy the page of group g that n has to the host's memory, where
// there is room for it and that is quicker than to make it again.
func (e *Engine) save(f *flight, n *node, g int) {
	p := e.host[g]
	if p.available() == 0 || !e.pace.saves(e.pageBytes[g], e.pageTokens(g)) {
		return
	}
	if len(p.free) == 0 {
		e.loseHost(p.pages[p.least()].node, g)
	}
	i := p.take()
	if e.memory[g][i] == nil {
		memory, err := e.exe.AllocHost(e.pageBytes[g])
		if err != nil {
			p.pages[i].holders = gone // there is less than was hoped for
			return
		}
		e.memory[g][i] = memory
	}
	at := &n.places[g]
	f.batch.States = append(f.batch.States, plan.StateOp{Kind: plan.SavePage, Group: g, Page: at.page, Host: e.memory[g][i]})
	f.saves = append(f.saves, save{n, g})
	f.moved += e.pageBytes[g]
	at.host, at.saved = i, f.number
	p.pages[i].node = n
	n.uses++
	p.let(i, 1)
	e.measures.Saves++
}

// restore has step f copy the page of group g that n has in the host's memory, which
// is held for it, to one of the device's.
func (e *Engine) restore(f *flight, n *node, g int) int32 {
	at := &n.places[g]
	page := e.take(f, g)
	f.batch.States = append(f.batch.States, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: page, Host: e.memory[g][at.host]})
	f.moved += e.pageBytes[g]
	at.page, at.filled = page, f.number
	e.pools[g].pages[page].node = n
	n.uses++
	e.host[g].let(at.host, 1)
	e.measures.Restores++
	return page
}

// pageTokens is how many tokens have to be run again where a page of group g is gone.
func (e *Engine) pageTokens(g int) int {
	if e.program.Groups[g].Kind == plan.PerSequence {
		return checkpointTokens
	}
	return pageTokens
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
