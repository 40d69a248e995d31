package engine

import "slices"

// Rests reports whether all followers have run what they were told to.
func (e *Engine) Rests() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range slices.Concat(e.queue.active, e.queue.waiting) {
		if s.following.known > 0 && !s.rests() || s.under > 0 {
			return false
		}
	}
	return true
}

// Cached calls see with the pages that are cached. The engine is locked.
func (e *Engine) Cached(see func(pages []CacheEvent)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var pages []CacheEvent
	for n := range e.tree.all {
		for g, at := range n.places {
			if at.page != none {
				pages = append(pages, *n.event(PageStored, g, false))
			}
			if at.host != none {
				pages = append(pages, *n.event(PageStored, g, true))
			}
		}
	}
	see(pages)
}
