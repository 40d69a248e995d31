package realizar

import (
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

// cacheEvents returns the function for [engine.Config] that passes events to o.CacheEvents.
func (o *Options) cacheEvents(p *plan.Program) func(*engine.CacheEvent) {
	if o.CacheEvents == nil {
		return nil
	}
	return func(e *engine.CacheEvent) { o.CacheEvents(cacheEvent(p, e)) }
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
