package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// ErrNoRoom reports that host memory has too little room for the pages that are to leave or to
// arrive.
var ErrNoRoom = errors.New("host memory has no room for the pages; a larger host cache takes more at a time")

// An Export holds the pages of a prefix in host memory, from where another engine that runs the
// same program with the same weights and arithmetic on the same kind of device can import them. The
// caller releases it.
type Export struct {
	engine *Engine
	pages  int // of tokens
	bytes  int
	held   []exported      // in the order of [Engine.eachPage]
	reads  int             // running calls of Read
	over   bool            // it is released
	failed error           // a page could not be saved
	after  uint64          // the last step that saves a page
	ctx    context.Context // of the call that waits for the pages
}

// An exported is a page of an [Export].
type exported struct {
	node   *node
	group  int
	depth  int   // number of pages of tokens before its own
	device int32 // held until a step saves it, or none
	host   int32 // held, or none
}

// prefixOf returns a sequence that finds the cached pages of a prompt and is never run.
func (e *Engine) prefixOf(prompt []int32, salt string) *sequence {
	s := &sequence{run: &run{Request: &Request{Prompt: prompt, Salt: salt}}, class: e.program.LengthClass(len(prompt)), tokens: prompt}
	if e.checks.every > 0 {
		s.checks = &e.checks
	}
	return s
}

// eachPage calls do with every page that a sequence needs to continue after that many pages of
// tokens if it has those before skip: with its group and the number of pages of tokens before its
// own. All engines with the same program have the same order.
func (e *Engine) eachPage(pages, skip int, do func(group, depth int)) {
	for g, group := range e.program.Groups {
		for k := max(firstPage(group, pages*pageTokens), skip); k < pages; k++ {
			do(g, k)
		}
	}
}

// Export copies the pages of the longest cached prefix of prompt to host memory and holds them
// there. Exports and imports hold at most half of the host's pages of each group; beyond that
// Export returns [ErrNoRoom].
func (e *Engine) Export(ctx context.Context, prompt []int32, salt string) (_ *Export, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer context.AfterFunc(ctx, e.wakeCopies)()
	s := e.prefixOf(prompt, salt)
	pages, waits := e.match(s)
	for waits && e.runs(ctx) == nil {
		e.copies.Wait()
		pages, waits = e.match(s)
	}
	if err := e.runs(ctx); err != nil {
		return nil, err
	}
	x := &Export{engine: e, pages: pages, ctx: ctx}
	e.exports = append(e.exports, x)
	defer func() {
		if err != nil {
			x.release()
		}
	}()
	need := make([]int, len(e.host))
	e.eachPage(pages, 0, func(g, k int) {
		if i := e.matched[k].places[g].host; i == none || e.host[g].pages[i].holders == 0 {
			need[g]++
		}
	})
	if !e.roomFor(need) {
		return nil, ErrNoRoom
	}
	e.eachPage(pages, 0, func(g, k int) {
		h := exported{node: e.matched[k], group: g, depth: k, device: none, host: none}
		if at := &h.node.places[g]; at.host != none && at.saved <= e.done {
			h.host = at.host
			e.host[g].hold(h.host)
		} else {
			h.device, waits = at.page, true
			e.pools[g].hold(h.device)
		}
		h.node.uses++
		x.held, x.bytes = append(x.held, h), x.bytes+e.pageBytes[g]
	})
	if waits {
		e.unsaved = append(e.unsaved, x)
		e.work.Signal()
	}
	for x.waits() && x.lost() == nil && e.runs(ctx) == nil {
		e.copies.Wait()
	}
	return x, cmp.Or(e.runs(ctx), x.lost())
}

// runs returns an error if ctx has ended or the engine is closing.
func (e *Engine) runs(ctx context.Context) error {
	if e.closing.Load() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return ended(ctx, ctx.Err())
	}
	return nil
}

// wakeCopies wakes the callers that wait for copies.
func (e *Engine) wakeCopies() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.copies.Broadcast()
}

// roomFor reports whether exports and imports may hold n more host pages, by group. Only they hold
// such pages for longer than it takes to make a step.
func (e *Engine) roomFor(n []int) bool {
	held := slices.Clone(n)
	for _, x := range e.unsaved {
		for i := range x.held {
			if x.held[i].host == none {
				held[x.held[i].group]++
			}
		}
	}
	for g, p := range e.host {
		if n[g] > 0 && p.size()-p.available()+held[g] > max(1, p.size()/2) {
			return false
		}
	}
	return true
}

// waits reports whether pages of x are not in host memory yet.
func (x *Export) waits() bool {
	return x.after > x.engine.done || slices.ContainsFunc(x.held, func(h exported) bool { return h.host == none })
}

// lost returns an error if a page of x could not be saved, or is gone because its step failed.
func (x *Export) lost() error {
	if x.failed != nil {
		return x.failed
	}
	for i := range x.held {
		if h := &x.held[i]; h.host != none && h.node.places[h.group].host != h.host {
			return errors.New("the step that was to copy the pages to host memory has failed")
		}
	}
	return nil
}

// saveExports adds copies to f that save pages for exports. If sequences are decoding, a step saves
// at most as many bytes as it restores.
func (e *Engine) saveExports(f *flight) {
	left, first := savedInStep*e.largestPage(), true
	if e.queue.decoding() > 0 {
		left = e.restorable()
	}
	if len(e.unsaved) == 0 {
		return
	}
	for len(e.unsaved) > 0 {
		x := e.unsaved[0]
		if err := e.runs(x.ctx); err != nil {
			x.failed = err
		}
		for i := range x.held {
			h := &x.held[i]
			if x.failed != nil || h.device == none {
				continue
			}
			if left < e.pageBytes[h.group] && !first {
				return
			}
			at := &h.node.places[h.group]
			if at.host == none && at.page == h.device {
				e.save(f, h.node, h.group)
				left, first = left-e.pageBytes[h.group], false
			}
			if at.host == none { // there is no room, or the page is lost
				x.failed = ErrNoRoom
				continue
			}
			h.host = at.host
			e.host[h.group].hold(h.host)
			x.after = max(x.after, at.saved)
			e.pools[h.group].let(h.device, e.cost(h.group, h.device, x.pages*pageTokens))
			h.device = none
		}
		e.unsaved = slices.Delete(e.unsaved, 0, 1)
	}
	e.copies.Broadcast()
}

func (e *Engine) largestPage() int {
	if len(e.pageBytes) == 0 {
		return 0
	}
	return slices.Max(e.pageBytes)
}

// saveAlone runs a step that only saves pages for exports, and reports whether it did. No step is
// in flight.
func (e *Engine) saveAlone() bool {
	if len(e.unsaved) == 0 {
		return false
	}
	ok := e.takeScratch()
	defer e.letScratch()
	if !ok {
		return false // sequences hold all pages, and run soon
	}
	f := e.newFlight()
	f.number = e.steps + 1
	e.saveExports(f)
	if len(f.saves) > 0 && !e.runSaves(f) {
		e.lost(f, nil)
	}
	e.keep(f)
	e.copies.Broadcast()
	return true
}

// Tokens returns how many of the first tokens of the prompt the pages hold.
func (x *Export) Tokens() int { return x.pages * pageTokens }

// Bytes returns the size of the pages in bytes.
func (x *Export) Bytes() int { return x.bytes }

// Read calls do with the pages of x that are not among the first skip tokens, in an order that all
// engines with the same program share. They stay as they are until do returns. The context of do
// ends when the engine is closed, which waits for do.
func (x *Export) Read(ctx context.Context, skip int, do func(ctx context.Context, pages [][]byte) error) error {
	e := x.engine
	e.mu.Lock()
	if x.over {
		e.mu.Unlock()
		return errors.New("the exported pages are released")
	}
	if err := e.runs(ctx); err != nil {
		e.mu.Unlock()
		return err
	}
	var pages [][]byte
	for i := range x.held {
		if h := &x.held[i]; h.depth >= skip/pageTokens {
			pages = append(pages, e.memory[h.group][h.host])
		}
	}
	x.reads++
	ctx, done := e.copying(ctx)
	e.mu.Unlock()
	defer func() { // also if do panics
		e.mu.Lock()
		defer e.mu.Unlock()
		done()
		if x.reads--; x.over && x.reads == 0 {
			x.let()
		}
	}()
	return do(ctx, pages)
}

// copying counts a use of host memory by a caller. The context ends when the engine is closed, and
// the caller calls done, which needs the lock as copying does.
func (e *Engine) copying(ctx context.Context) (_ context.Context, done func()) {
	e.borrowed++
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		e.borrowed--
		e.copies.Broadcast()
	}
}

// Release ends x. Running calls of Read keep the pages until they return.
func (x *Export) Release() {
	x.engine.mu.Lock()
	defer x.engine.mu.Unlock()
	x.release()
}

func (x *Export) release() {
	if x.over {
		return
	}
	if x.over = true; x.reads == 0 {
		x.let()
	}
}

// let gives up the pages of x.
func (x *Export) let() {
	e := x.engine
	is := func(o *Export) bool { return o == x }
	e.exports, e.unsaved = slices.DeleteFunc(e.exports, is), slices.DeleteFunc(e.unsaved, is)
	for i := len(x.held) - 1; i >= 0; i-- { // the last first: a page is of no use without those before it
		h := &x.held[i]
		if h.host != none {
			e.host[h.group].let(h.host, 1)
		}
		if h.device != none {
			e.pools[h.group].let(h.device, e.cost(h.group, h.device, x.pages*pageTokens))
		}
		e.tree.unuse(h.node)
	}
	x.held = nil
}
