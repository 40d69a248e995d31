package server

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"

	"github.com/realizar/realizar"
)

// A Grammar is a grammar as the request states it.
type Grammar struct {
	Kind GrammarKind
	Text []byte
	// Strict refuses a JSON Schema that OpenAI's strict mode refuses.
	Strict bool
	// Compact allows no white space in JSON, whatever the server's own setting.
	Compact bool
	Param   string // the field that states the grammar
}

// A GrammarKind is the notation of a [Grammar]'s text.
type GrammarKind uint8

// The kinds.
const (
	JSONSchema    GrammarKind = iota
	JSONObject                // any JSON object; has no text
	Regexp                    // a regular expression
	Choice                    // a JSON list of strings
	EBNF                      // GBNF if the text has "::=", otherwise Lark's notation
	GBNF                      // llama.cpp's notation
	StructuralTag             // JSON, as in the request
)

// compile compiles g for m. The options o apply to JSON.
func (g *Grammar) compile(m *realizar.Model, o realizar.JSONOptions) (*realizar.Grammar, error) {
	o.Strict = g.Strict
	if g.Compact {
		o.Space = realizar.JSONSpaceNone
	}
	text := string(g.Text)
	switch g.Kind {
	case JSONSchema:
		return realizar.JSONSchema(g.Text, o)
	case JSONObject:
		return realizar.JSONObject(o)
	case Regexp:
		return realizar.Regexp(text)
	case Choice:
		var texts []string
		if err := json.Unmarshal(g.Text, &texts); err != nil {
			return nil, errors.Join(realizar.ErrRequest, err)
		}
		return realizar.OneOf(texts...)
	case StructuralTag:
		return m.StructuralTag(g.Text, o)
	case EBNF:
		if !strings.Contains(text, "::=") {
			return realizar.Lark(text)
		}
	}
	return realizar.GBNF(text)
}

// tagsKey is the [Note] key of a random text that is unique to a model.
type tagsKey struct{}

// key returns a hash that is equal only for equal grammars. If the grammar depends on the model, of
// is a text unique to the model.
func (g *Grammar) key(of string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(of))
	h.Write([]byte{byte(g.Kind), flag(g.Strict), flag(g.Compact)})
	h.Write(g.Text)
	return [sha256.Size]byte(h.Sum(nil))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// The bounds of the cache: the number of grammars, and the bytes of their texts together. A grammar
// with a longer text is compiled for each request. A compiled grammar takes up to grammarCost bytes
// for each byte of its text, as a list of many short texts does.
const (
	maxGrammars     = 128
	maxGrammarBytes = 2 << 20
	grammarCost     = 128
)

// grammars caches the grammars that were used last. Of a grammar that does not compile it caches
// the error. Requests for the same text at the same time share one compilation. The number of
// concurrent compilations is bounded.
type grammars struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*list.Element // of *compiled
	order *list.List                          // most recently used first
	bytes int                                 // total size of the texts
	slots chan struct{}                       // holds one value per running compilation
}

func newGrammars() *grammars {
	return &grammars{known: map[[sha256.Size]byte]*list.Element{}, order: list.New(), slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// A compiled is an entry of grammars, compiled or being compiled.
type compiled struct {
	key     [sha256.Size]byte
	bytes   int
	waiting int           // number of requests that wait; guarded by the mutex of grammars
	left    chan struct{} // closed when no request waits any more
	done    chan struct{} // closed when grammar and err are set
	grammar *realizar.Grammar
	err     error
}

// get returns the grammar with that key. It calls compile if the cache does not have it. It returns
// early when ctx ends. A compilation that no request waits for is not started.
func (gs *grammars) get(ctx context.Context, key [sha256.Size]byte, bytes int, compile func() (*realizar.Grammar, error)) (*realizar.Grammar, error) {
	c := gs.enter(key, bytes, compile)
	defer gs.leave(c)
	select {
	case <-c.done:
		return c.grammar, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// has reports whether the grammar with that key is cached or being compiled.
func (gs *grammars) has(key [sha256.Size]byte) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.known[key] != nil
}

// enter returns the entry of a grammar and registers the caller as waiting for it.
func (gs *grammars) enter(key [sha256.Size]byte, bytes int, compile func() (*realizar.Grammar, error)) *compiled {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	e, ok := gs.known[key]
	if ok {
		gs.order.MoveToFront(e)
	} else {
		c := &compiled{key: key, bytes: bytes, left: make(chan struct{}), done: make(chan struct{})}
		e = gs.order.PushFront(c)
		gs.known[key] = e
		gs.bytes += bytes
		for last := gs.order.Back(); last != e && (gs.order.Len() > maxGrammars || gs.bytes > maxGrammarBytes); last = gs.order.Back() {
			gs.forget(last)
		}
		go gs.compile(c, compile)
	}
	c := e.Value.(*compiled)
	c.waiting++
	return c
}

// leave notes that a request no longer waits for c.
func (gs *grammars) leave(c *compiled) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if c.waiting--; c.waiting > 0 {
		return
	}
	keep := c.bytes <= maxGrammarBytes
	select {
	case <-c.done:
	default: // the next request for it starts again
		close(c.left)
		keep = false
	}
	if e := gs.known[c.key]; !keep && e != nil && e.Value == c {
		gs.forget(e)
	}
}

func (gs *grammars) forget(e *list.Element) {
	c := e.Value.(*compiled)
	gs.order.Remove(e)
	delete(gs.known, c.key)
	gs.bytes -= c.bytes
}

// compile compiles c once it has a slot, unless no request waits for it by then.
func (gs *grammars) compile(c *compiled, compile func() (*realizar.Grammar, error)) {
	select {
	case <-c.left:
		return
	case gs.slots <- struct{}{}:
	}
	defer func() { <-gs.slots }()
	select {
	case <-c.left:
		return
	default:
	}
	func() {
		defer recoverTo(&c.err)
		c.grammar, c.err = compile()
	}()
	close(c.done)
}

// grammar returns g compiled, or nil if g is nil. Its error names g's field. The memory of a
// grammar that is not cached is charged to the request until it ends.
func (x *Exchange) grammar(ctx context.Context, g *Grammar) (*realizar.Grammar, error) {
	if g == nil {
		return nil, nil
	}
	s, of := x.Server, ""
	if g.Kind == StructuralTag {
		of = Note(x.Model(), tagsKey{}, rand.Text)
	}
	key := g.key(of)
	if cost := grammarCost * len(g.Text); !s.grammars.has(key) {
		if err := x.Reserve(cost); err != nil {
			return nil, err
		}
	}
	made, err := s.grammars.get(ctx, key, len(g.Text), func() (*realizar.Grammar, error) { return g.compile(x.Model().Model, s.config.JSON) })
	return made, OfField(g.Param, err)
}
