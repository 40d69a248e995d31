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
