package realizar

import (
	"sync"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// A CacheEvent is a change of the KV cache: a page was stored or removed, or the model was closed
// and all pages are gone. A page is identified by the tokens from the first one to its own last one
// and by the salt of the request. It belongs to one pool (see [Metrics.Pools]). Stored pages of a
// running answer may still be computed by the current step; if that fails, they are removed.
type CacheEvent struct {
	Change CacheChange
	// Hash identifies the page's tokens with those before them and the salt, and Parent is the Hash
	// of the page before, or 0 for the first page. Hash is the first 8 bytes of the SHA-256 of Parent
	// (8 bytes) and the page's tokens (4 bytes each), all big-endian. For the first page of a request
	// with a salt, the first 8 bytes of the SHA-256 of 8 bytes and the salt take the place of Parent;
	// these bytes are 0, or number the rotary frequencies that the length of the prompt selects.
	Hash, Parent uint64
	Tokens       []int32 // of the page; valid until the call returns
	Salt         string  // of the request, in its first page
	Host         bool    // the page is in host memory, see Options.HostCache

	Pool, Pools int // number of the pool, of this many
	// What the layers of the pool see of the tokens before theirs: the last Window, those since the
	// last multiple of Chunk, or a state that summarizes all of them. If none is set: all.
	Window, Chunk int
	Recurrent     bool
}

// A CacheChange is what a [CacheEvent] changes.
type CacheChange uint8

// The changes.
const (
	CacheStored CacheChange = iota
	CacheRemoved
	CacheCleared // all pages are gone; the event has nothing else
)

// cacheEvents passes the changes of the caches of all replicas to [Options.CacheEvents], as those of
// one cache: a page is stored when the first replica stores it, and removed when no replica has it
// any longer. A replica that has failed has no pages until it is back.
type cacheEvents struct {
	program *plan.Program
	pass    func(CacheEvent) // or nil

	mu      sync.Mutex
	pages   map[cachedPage]uint64 // the replicas that have it, by bit; nil for a single one
	out     uint64                // replicas that have failed
	cleared uint64
	all     uint64
}

// A cachedPage identifies a page.
type cachedPage struct {
	hash  uint64
	group int
	host  bool
}

func (o *Options) newCacheEvents(p *plan.Program, replicas int) *cacheEvents {
	c := &cacheEvents{program: p, pass: o.CacheEvents, all: 1<<replicas - 1}
	if replicas > 1 {
		c.pages = map[cachedPage]uint64{}
	}
	return c
}

// of returns the function for the [engine.Config] of a replica.
func (c *cacheEvents) of(replica int) func(*engine.CacheEvent) {
	switch {
	case c.pass == nil:
		return nil
	case c.pages == nil:
		return func(e *engine.CacheEvent) { c.pass(cacheEvent(c.program, e)) }
	}
	return func(e *engine.CacheEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.change(1<<replica, e)
	}
}

// change records an event of the replica with that bit, and passes it if it changes what the replicas
// have together.
func (c *cacheEvents) change(bit uint64, e *engine.CacheEvent) {
	page := cachedPage{e.Hash, e.Group, e.Host}
	before := c.pages[page]
	now := before
	switch e.Kind {
	case engine.PagesCleared: // the model is being closed
		if c.cleared |= bit; c.cleared == c.all {
			c.pass(CacheEvent{Change: CacheCleared})
		}
		return
	case engine.PageStored:
		now |= bit
	case engine.PageRemoved:
		now &^= bit
	}
	if c.pages[page] = now; now == 0 {
		delete(c.pages, page)
	}
	if (before&^c.out == 0) != (now&^c.out == 0) {
		c.pass(cacheEvent(c.program, e))
	}
}

// took returns the function that is told when a replica fails and when it is back.
func (c *cacheEvents) took(engines []*engine.Engine) func(replica int, out bool) {
	if c.pass == nil {
		return nil
	}
	return func(replica int, out bool) {
		bit := uint64(1) << replica
		if out {
			c.mu.Lock()
			defer c.mu.Unlock()
			for page, have := range c.pages {
				if have&^c.out == bit {
					c.pass(cacheEvent(c.program, &engine.CacheEvent{Kind: engine.PageRemoved, Hash: page.hash, Group: page.group, Host: page.host}))
				}
			}
			c.out |= bit
			return
		}
		engines[replica].Cached(func(pages []engine.CacheEvent) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for i := range pages {
				page := cachedPage{pages[i].Hash, pages[i].Group, pages[i].Host}
				if c.pages[page]&^c.out == 0 {
					c.pass(cacheEvent(c.program, &pages[i]))
				}
			}
			c.out &^= bit
		})
	}
}

func cacheEvent(p *plan.Program, e *engine.CacheEvent) CacheEvent {
	if e.Kind == engine.PagesCleared {
		return CacheEvent{Change: CacheCleared}
	}
	g := p.Groups[e.Group]
	return CacheEvent{
		Change: CacheChange(e.Kind), Hash: e.Hash, Parent: e.Parent, Tokens: e.Tokens, Salt: e.Salt, Host: e.Host,
		Pool: e.Group, Pools: len(p.Groups), Window: g.Window, Chunk: g.Chunk, Recurrent: g.Kind == plan.PerSequence,
	}
}
