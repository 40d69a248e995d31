package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// A CacheEvent is a change of what is cached: a page of one group was added to the device or to host
// memory, or removed from there, or all pages are gone. A page is named by its history: the tokens
// up to its end, and the salt.
type CacheEvent struct {
	Kind CacheChange
	// Hash identifies the history, and Parent the history without the page's tokens; Parent is 0 if
	// these are the first.
	Hash, Parent uint64
	Tokens       []int32 // of the page; valid until the call returns
	Salt         string  // of the request, if the page is the first of its history
	Group        int
	Host         bool // the page is in host memory
}

// A CacheChange says what a [CacheEvent] changes.
type CacheChange uint8

// The changes.
const (
	PageStored CacheChange = iota
	PageRemoved
	PagesCleared
)

// event passes a change of n's page of group g to the configured function. The caller holds e.mu.
func (e *Engine) event(kind CacheChange, n *node, g int, host bool) {
	if e.config.Events == nil {
		return
	}
	e.config.Events(n.event(kind, g, host))
}

func (n *node) event(kind CacheChange, g int, host bool) *CacheEvent {
	c := &CacheEvent{Kind: kind, Hash: n.hash, Parent: n.parent.hash, Tokens: n.key.tokens[:], Group: g, Host: host}
	if n.parent.parent == nil {
		c.Parent, c.Salt = 0, n.parent.root.salt
	}
	return c
}

// Cached calls see with an event for each cached page, as if it was stored now. Nothing is cached or
// removed until see returns.
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

// hashPage returns the hash of a page of tokens after the history with hash parent: the first 8 bytes
// of SHA-256 over the parent's 8 bytes and 4 bytes of each token, all big-endian. It is not 0.
func hashPage(parent uint64, tokens *[pageTokens]int32) uint64 {
	var b [8 + 4*pageTokens]byte
	binary.BigEndian.PutUint64(b[:], parent)
	for i, id := range tokens {
		binary.BigEndian.PutUint32(b[8+4*i:], uint32(id))
	}
	return hashBytes(b[:])
}

// hashBeginning returns the hash of a history without tokens: 0 without a salt and in class 0,
// otherwise the first 8 bytes of SHA-256 over the class in 8 bytes, and the salt.
func hashBeginning(b beginning) uint64 {
	if b == (beginning{}) {
		return 0
	}
	return hashBytes(append(binary.BigEndian.AppendUint64(nil, uint64(b.class)), b.salt...))
}

func hashBytes(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return max(1, binary.BigEndian.Uint64(sum[:]))
}
