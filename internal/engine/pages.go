package engine

import "github.com/realizar/realizar/internal/plan"

// match finds the longest cached prefix of s, and returns its number of pages. It sets e.matched to
// the nodes of the prefix and of what follows it in the tree. waits is true if a step in flight is
// about to fill the next page.
func (e *Engine) match(s *sequence) (pages int, waits bool) {
	e.matched = e.matched[:0]
	n := e.tree.beginnings[beginning{s.run.Salt, s.class}]
	if n == nil {
		return 0, false
	}
	clear(e.spans)
	whole := true // no page of a group that keeps everything is missing
	for i := range s.reusable() / pageTokens {
		if n = e.tree.child(n, s.page(i)); n == nil {
			break
		}
		for g, group := range e.program.Groups {
			at := &n.places[g]
			switch {
			case !whole:
			case at.page != none && at.filled <= e.done, at.page == none && at.host != none && at.saved <= e.done:
				e.spans[g]++
			case at.page != none || at.host != none:
				return 0, true
			case group.KeepsAll():
				whole = false
			default:
				e.spans[g] = 0
			}
		}
		if e.matched = append(e.matched, n); whole && e.goesOn(i+1) {
			pages = i + 1
		}
		if !whole && s.checks == nil {
			break
		}
	}
	return pages, false
}

// page returns the tokens of page i of s.
func (s *sequence) page(i int) []int32 { return s.tokens[i*pageTokens : (i+1)*pageTokens] }

// goesOn reports whether every group can continue after that many pages. e.spans holds the number
// of consecutive pages up to there, by group.
func (e *Engine) goesOn(pages int) bool {
	for g, group := range e.program.Groups {
		if e.spans[g] < pages-firstPage(group, pages*pageTokens) {
			return false
		}
	}
	return true
}

// An outcome says whether a sequence got pages.
type outcome uint8

const (
	placed  outcome = iota
	later           // a step in flight computes its prefix, or it waits for another reason
	lacking         // there are too few pages
)

// place makes s, which is i-th in the queue, continue from its longest cached prefix, if there are
// pages for all its known tokens. Its first step has room for the given number of tokens. If behind
// is set, s may stay behind a sequence that runs what comes next.
func (e *Engine) place(f *flight, i int, s *sequence, tokens, patience int, behind bool) outcome {
	pages, waits := e.match(s)
	if behind && e.leader(s, pages) {
		return later
	}
	if behind && !waits && e.cold(s, pages) {
		e.frozen = append(e.frozen, s)
		return later
	}
	for !waits && e.lacks(s, pages, tokens) {
		if !e.preemptFor(f, i, patience) {
			return lacking
		}
		pages, waits = e.match(s) // pages that the preempted sequence restored may be gone
	}
	if waits {
		return later
	}
	e.findForks(s, pages)
	root := e.tree.begin(beginning{s.run.Salt, s.class})
	s.path = append(append(s.path[:0], root), e.matched[:pages]...)
	for _, n := range s.path {
		n.uses++
	}
	for g := range s.tables {
		t := &s.tables[g]
		need := s.path[t.begin(pages)+1:]
		for _, n := range need {
			at := &n.places[g]
			if t.append(at.page, pages*pageTokens); at.page != none {
				e.pools[g].hold(at.page)
			} else {
				e.host[g].hold(at.host)
			}
		}
	}
	for g := range s.tables { // once all are held
		t := &s.tables[g]
		for k, n := range s.path[pages+1-len(t.pages):] {
			if t.pages[k] == none {
				t.pages[k] = e.restore(f, n, g)
			}
		}
	}
	s.placed, s.places, s.step, s.warmed = true, s.places+1, 0, 0
	s.sent, s.done = pages*pageTokens, pages*pageTokens
	if s.arrive(); s.rests() {
		e.idle.Store(false) // its place is free for others
	}
	e.measures.placed(s)
	return placed
}

// lacks reports whether there are too few pages for the tokens of s and the next one, if s
// continues from that many cached pages. Of a group whose pages only pass it needs those of its
// first step, which has room for the given number of tokens.
func (e *Engine) lacks(s *sequence, pages, tokens int) bool {
	for g, group := range e.program.Groups {
		first := firstPage(group, pages*pageTokens)
		end, passing := min(len(s.tokens)+1, s.total()), s.tables[g].passing
		if passing {
			end = min(end, pages*pageTokens+tokens)
		}
		need := e.config.need(group, passing, pages, end)
		idle := 0 // of the matched pages
		for _, n := range e.matched[first:pages] {
			if page := n.places[g].page; page != none {
				if need--; e.pools[g].pages[page].holders == 0 {
					idle++
				}
			}
		}
		if need > e.pools[g].available()-idle {
			return true
		}
	}
	return false
}

// trim releases the pages that no later token of s needs. Steps run in order, so pages that no
// sequence finds are free for the next step, although one in flight still fills them.
func (e *Engine) trim(s *sequence) {
	for g := range s.tables {
		t, pos := &s.tables[g], s.done
		if t.passing {
			pos = s.sent
		}
		held := s.settled(pos)
		e.dropPages(s, g, 0, t.past(held))
		if held < pos && writtenAlways(t.group) { // those between the state to go back to and the last
			e.dropPages(s, g, t.past(held+1), t.past(pos))
		}
	}
}

// dropPages releases the pages from first up to end of s in group g.
func (e *Engine) dropPages(s *sequence, g, first, end int) {
	t := &s.tables[g]
	for _, page := range t.pages[first:max(first, end)] {
		// Its content is complete, even if it was published for a later step.
		if n := e.pools[g].pages[page].node; n != nil {
			n.places[g].filled = min(n.places[g].filled, e.done)
		}
		e.pools[g].let(page, e.cost(g, page, s.sent))
	}
	t.drop(first, max(first, end))
}

// cover takes pages for s up to position end, and reports whether it did. If pages run short, s
// waits for a step of its own that is about to release some; or cover preempts other sequences, or
// else s itself.
func (e *Engine) cover(f *flight, i int, s *sequence, end, patience int) bool {
	for g := e.lacking(s, end); g >= 0; g = e.lacking(s, end) {
		if s.under > 0 && s.tables[g].waits() {
			return false
		}
		if !e.preemptFor(f, i, patience) {
			e.preempt(s)
			return false
		}
	}
	for g := range s.tables {
		t := &s.tables[g]
		for range t.lacks(end) {
			t.append(e.take(f, g), end)
		}
	}
	return true
}

// costOf returns the relative cost to recompute a page of a sequence of that many tokens. At
// attentionTokens, attention costs about as much as the weights.
func costOf(tokens int) float64 { return 1 + float64(tokens)/attentionTokens }

const attentionTokens = 16384

// lacking returns the first group that has too few pages for s up to position end, or -1.
func (e *Engine) lacking(s *sequence, end int) int {
	for g := range s.tables {
		if s.tables[g].lacks(end) > e.pools[g].available() {
			return g
		}
	}
	return -1
}

// preemptFor preempts one sequence for the i-th: one that waits for its caller, or the last one
// with pages after the i-th. The preempted sequence is not in the step being made. It returns false
// if there is none.
func (e *Engine) preemptFor(f *flight, i, patience int) bool {
	for k, s := range e.queue.active {
		if k != i && s.placed && s.stalls(patience) && (s.step != f.number || s.under == 0) {
			e.preempt(s)
			return true
		}
	}
	for k := len(e.queue.active) - 1; k > i; k-- {
		if s := e.queue.active[k]; s.placed {
			e.preempt(s)
			return true
		}
	}
	return false
}

// preempt releases the pages of s, which become idle. When s is placed again, it continues from
// those that are still cached.
func (e *Engine) preempt(s *sequence) {
	e.release(s)
	s.run.stats.Preemptions++
	e.measures.Preemptions++
}

// giveUp preempts s, which loses its place, if it has pages.
func (e *Engine) giveUp(s *sequence) {
	if s.placed {
		e.preempt(s)
	}
}

// release gives up all pages of s. Other requests must not find pages that a step in flight still
// fills, because they would not learn of its failure: release removes these from the tree.
func (e *Engine) release(s *sequence) {
	if !s.placed {
		return
	}
	s.placed = false
	for g := range s.tables {
		t := &s.tables[g]
		for k := len(t.pages) - 1; k >= 0; k-- {
			if at := t.history(k); at < len(s.path) {
				n := s.path[at]
				if n.places[g].page == t.pages[k] && n.places[g].filled > e.done {
					e.losePage(n, g)
				}
			}
			e.pools[g].let(t.pages[k], e.cost(g, t.pages[k], s.sent)) // the last first: a page is of no use without those before it
		}
		t.begin(0)
	}
	s.sent, s.done = 0, 0
	e.reviveLast(s)
	for k := len(s.path) - 1; k >= 0; k-- {
		e.tree.unuse(s.path[k])
	}
	clear(s.path)
	s.path = s.path[:0]
}

// publish makes the full pages of s up to position upto findable by other sequences. step fills the
// last of them.
func (e *Engine) publish(s *sequence, upto int, step uint64) {
	if s.whole {
		return // it leaves no states
	}
	upto = s.settled(upto)
	for i := len(s.path) - 1; (i+1)*pageTokens <= upto; i++ {
		n := e.tree.grow(s.path[i], s.page(i))
		n.uses++
		s.path = append(s.path, n)
		for g, group := range e.program.Groups {
			if group.Kind == plan.PerToken {
				e.cache(n, g, s.tables[g].found(i), step)
			}
		}
		e.checkpoint(s, n, (i+1)*pageTokens, step)
	}
}

// cache makes a page, which step fills, findable as n's of group g, unless it is none or n has one.
func (e *Engine) cache(n *node, g int, page int32, step uint64) {
	if at := &n.places[g]; page != none && at.page == none {
		at.page, at.filled = page, step
		e.pools[g].pages[page].node = n
		n.uses++
		e.event(PageStored, n, g, false)
	}
}

// take returns a page of group g. It evicts the least valuable idle page if none is free.
func (e *Engine) take(f *flight, g int) int32 {
	p := e.pools[g]
	if len(p.free) == 0 {
		e.evict(f, p.pages[p.least()].node, g)
	}
	return p.take()
}

// losePage removes n's page of group g from the device.
func (e *Engine) losePage(n *node, g int) {
	page := n.places[g].page
	n.places[g].page = none
	e.pools[g].lose(page)
	e.event(PageRemoved, n, g, false)
	e.tree.unuse(n)
}
