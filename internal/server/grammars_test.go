package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/realizar/realizar"
)

// keyOf is the key of a text.
func keyOf(text string) [sha256.Size]byte {
	return (&Grammar{Kind: Regexp, Text: []byte(text)}).key("")
}

// counted compiles nothing, and counts how often.
func counted(n *atomic.Int64) func() (*realizar.Grammar, error) {
	return func() (*realizar.Grammar, error) {
		n.Add(1)
		return new(realizar.Grammar), nil
	}
}

// TestGrammarsShared: many that ask for one text at the same time have one grammar, which
// is compiled once; so do those that ask later.
func TestGrammarsShared(t *testing.T) {
	gs := newGrammars()
	var n atomic.Int64
	begun := make(chan struct{})
	slow := func() (*realizar.Grammar, error) {
		<-begun
		return counted(&n)()
	}
	made := make([]*realizar.Grammar, 32)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = gs.get(t.Context(), keyOf("a"), 1, slow); err != nil {
				t.Error(err)
			}
		})
	}
	close(begun)
	all.Wait()
	again, err := gs.get(t.Context(), keyOf("a"), 1, counted(&n))
	for i, g := range made {
		if g == nil || g != again || err != nil {
			t.Fatalf("request %d has %p, a later one %p (%v)", i, g, again, err)
		}
	}
	if n.Load() != 1 {
		t.Errorf("compiled %d times", n.Load())
	}
}

// TestGrammarsBounded: so many are kept, of so many bytes, and those that were asked for
// last; one that is too long is none of them.
func TestGrammarsBounded(t *testing.T) {
	gs := newGrammars()
	var n atomic.Int64
	get := func(text string, bytes int) {
		t.Helper()
		if _, err := gs.get(t.Context(), keyOf(text), bytes, counted(&n)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * maxGrammars {
		get(fmt.Sprint(i), 1)
		get("often", 1)
	}
	if len(gs.known) != maxGrammars || gs.order.Len() != maxGrammars || gs.bytes != maxGrammars || n.Load() != 2*maxGrammars+1 {
		t.Errorf("%d grammars of %d bytes are kept, %d were compiled", len(gs.known), gs.bytes, n.Load())
	}
	get("half", maxGrammarBytes/2)
	get("other half", maxGrammarBytes/2)
	if len(gs.known) != 2 || gs.bytes > maxGrammarBytes {
		t.Errorf("%d grammars of %d bytes are kept", len(gs.known), gs.bytes)
	}
	get("too long", 2*maxGrammarBytes)
	if gs.bytes > maxGrammarBytes || gs.known[keyOf("too long")] != nil {
		t.Errorf("%d bytes are kept", gs.bytes)
	}
	for _, g := range []Grammar{{Kind: Regexp, Text: []byte("a")}, {Kind: JSONSchema, Text: []byte("a")}, {Kind: JSONSchema, Text: []byte("a"), Strict: true}, {Kind: JSONSchema, Text: []byte("a"), Compact: true}} {
		gs.known[g.key("")] = nil
	}
	if n := len(gs.known); n < 4 {
		t.Errorf("%d keys; unlike grammars share one", n)
	}
}

// TestGrammarsLeft: who leaves does not wait, and what nobody waits for is not compiled.
func TestGrammarsLeft(t *testing.T) {
	gs := newGrammars()
	for range cap(gs.slots) {
		gs.slots <- struct{}{} // as if others were being compiled
	}
	var n atomic.Int64
	why := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(why)
	if _, err := gs.get(ctx, keyOf("a"), 1, counted(&n)); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if len(gs.known) != 0 || gs.order.Len() != 0 || gs.bytes != 0 {
		t.Errorf("%d are kept", len(gs.known))
	}
	for range cap(gs.slots) {
		<-gs.slots
	}
	for range 3 { // an error is kept as well, a panic does not end the process
		if _, err := gs.get(t.Context(), keyOf("b"), 1, func() (*realizar.Grammar, error) { n.Add(1); panic("no") }); err == nil {
			t.Error("no error")
		}
	}
	if n.Load() != 1 {
		t.Errorf("compiled %d times, want once", n.Load())
	}
}
