package realizar

import "github.com/realizar/realizar/internal/engine"

// Cached calls see with an event for each cached page. Nothing is cached or removed until see
// returns.
func (m *Model) Cached(see func(pages []CacheEvent)) {
	m.engine.Engines()[0].Cached(func(pages []engine.CacheEvent) {
		all := make([]CacheEvent, len(pages))
		for i := range pages {
			all[i] = cacheEvent(m.arch.Program, &pages[i])
		}
		see(all)
	})
}
