package engine

import (
	"context"
	"fmt"
	"slices"
)

// Import takes the pages of the first tokens of prompt that another engine has exported into host
// memory, where they are found like pages that this engine has evicted. It calls fill with the
// number of tokens that are cached already and the memory to fill with the other pages, in the
// order of [Export.Read]. If fill returns an error, nothing is imported, and Import returns the
// error. The context of fill ends when the engine is closed, which waits for fill. If host memory
// has too little room, Import returns [ErrNoRoom] and does not call fill.
func (e *Engine) Import(ctx context.Context, prompt []int32, salt string, tokens int, fill func(ctx context.Context, skip int, pages [][]byte) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer context.AfterFunc(ctx, e.wakeCopies)()
	if err := e.runs(ctx); err != nil {
		return err
	}
	pages := tokens / pageTokens
	if tokens%pageTokens != 0 || tokens < 0 || tokens > len(prompt) {
		return fmt.Errorf("engine: pages of %d tokens of a prompt of %d; want a multiple of %d up to there", tokens, len(prompt), pageTokens)
	}
	s := e.prefixOf(prompt, salt)
	skip, _ := e.match(s)
	skip = min(skip, pages)
	need := make([]int, len(e.host))
	e.eachPage(pages, skip, func(g, _ int) { need[g]++ })
	if !e.roomFor(need) {
		return ErrNoRoom
	}
	in := &arrivals{engine: e, pages: pages}
	e.imports = append(e.imports, in)
	defer in.let() // those that are not in the tree become free
	if !in.take(skip) {
		return ErrNoRoom
	}
	// Steps that were made before may still copy from and to what was in the pages.
	for last := e.latest(); e.done < last && (len(e.flights) > 0 || e.begins != nil); e.copies.Wait() {
		if err := e.runs(ctx); err != nil {
			return err
		}
	}
	ctx, done := e.copying(ctx)
	defer done()
	if err := in.fill(ctx, skip*pageTokens, fill); err != nil {
		return err
	}
	if e.closing.Load() {
		return ErrClosed
	}
	in.add(s)
	return nil
}

// fill calls do without the lock.
func (in *arrivals) fill(ctx context.Context, skip int, do func(ctx context.Context, skip int, pages [][]byte) error) error {
	in.engine.mu.Unlock()
	defer in.engine.mu.Lock()
	return do(ctx, skip, in.memory())
}

// latest returns the number of the last step that was submitted, or is being submitted.
func (e *Engine) latest() uint64 {
	if e.begins != nil {
		return max(e.steps, e.begins.number)
	}
	return e.steps
}

// arrivals are the pages of an import.
type arrivals struct {
	engine *Engine
	pages  int // of tokens
	list   []arrival
}

// An arrival is a page of an import.
type arrival struct {
	group, depth int
	host         int32 // held
}

// take takes host memory for all pages that follow the first skip, and reports whether there was
// enough.
func (in *arrivals) take(skip int) bool {
	enough := true
	in.engine.eachPage(in.pages, skip, func(g, k int) {
		if !enough {
			return
		}
		i := in.engine.claimHost(g)
		if enough = i != none; enough {
			in.list = append(in.list, arrival{group: g, depth: k, host: i})
		}
	})
	return enough
}

// memory returns the memory of the pages.
func (in *arrivals) memory() [][]byte {
	all := make([][]byte, len(in.list))
	for i, a := range in.list {
		all[i] = in.engine.memory[a.group][a.host]
	}
	return all
}

// let gives up the pages.
func (in *arrivals) let() {
	e := in.engine
	for i := len(in.list) - 1; i >= 0; i-- {
		e.host[in.list[i].group].let(in.list[i].host, costOf(in.pages*pageTokens))
	}
	e.imports = slices.DeleteFunc(e.imports, func(o *arrivals) bool { return o == in })
}

// add makes the pages findable as those of the tokens of s.
func (in *arrivals) add(s *sequence) {
	e := in.engine
	path := []*node{e.tree.begin(beginning{s.run.Salt, s.class})}
	path[0].uses++
	for k := range in.pages {
		n := e.tree.grow(path[k], s.page(k))
		n.uses++
		path = append(path, n)
	}
	for i := range in.list {
		a := &in.list[i]
		n := path[a.depth+1]
		if at := &n.places[a.group]; at.host == none && at.page == none { // it may have been computed meanwhile
			at.host, at.saved = a.host, e.done
			e.host[a.group].pages[a.host].node = n
			n.uses++
			e.event(PageStored, n, a.group, true)
		}
	}
	for k := len(path) - 1; k >= 0; k-- {
		e.tree.unuse(path[k])
	}
}
