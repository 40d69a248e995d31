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

// A Grammar is one as a request has it.
type Grammar struct {
	Kind GrammarKind
	Text []byte
	// Strict refuses a JSON Schema that OpenAI's strict mode refuses.
	Strict bool
	// Compact has JSON without white space, whatever the server's own setting.
	Compact bool
	Param   string // the field that it is
}

// A GrammarKind is what the text of a [Grammar] is written in.
type GrammarKind uint8

// The kinds.
const (
	JSONSchema    GrammarKind = iota
	JSONObject                // of any JSON object; without a text
	Regexp                    // a regular expression
	Choice                    // a JSON list of texts
	EBNF                      // GBNF, where it has "::=", or Lark's notation
	GBNF                      // llama.cpp's notation
	StructuralTag             // as a request has it, in JSON
)

// compile makes it for m. JSON is written as o says.
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

// tagsKey is that of a text that no other model has.
type tagsKey struct{}

// key is equal of equal grammars alone, and where they are a model's of equal texts of that.
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

// The most grammars that are kept, and the most bytes of their texts together. One longer
// than that is compiled each time. A grammar takes up to grammarCost bytes for each of its
// text, as a list of many short texts does.
const (
	maxGrammars     = 128
	maxGrammarBytes = 2 << 20
	grammarCost     = 128
)

// grammars are those that requests had last, and errors of those that are none. Those
// that ask for one text at the same time wait for one compilation; few are under way at a
// time.
type grammars struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*list.Element // of *compiled
	order *list.List                          // the one that was asked for last comes first
	bytes int                                 // of the texts
	slots chan struct{}                       // one for each compilation under way
}

func newGrammars() *grammars {
	return &grammars{known: map[[sha256.Size]byte]*list.Element{}, order: list.New(), slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// A compiled grammar is one of grammars, or is going to be.
type compiled struct {
	key     [sha256.Size]byte
	bytes   int
	waiting int           // requests; with the mutex of grammars
	left    chan struct{} // closed when none waits any more
	done    chan struct{} // closed when what follows is there
	grammar *realizar.Grammar
	err     error
}

// get is the grammar of that key, which compile makes where it is not there. It returns
// when ctx ends, and a compilation that nobody waits for does not begin.
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

// has reports whether the grammar of that key is there, or is being made.
func (gs *grammars) has(key [sha256.Size]byte) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.known[key] != nil
}

// enter has the caller wait for a grammar.
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

// leave has one request less wait for c.
func (gs *grammars) leave(c *compiled) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if c.waiting--; c.waiting > 0 {
		return
	}
	keep := c.bytes <= maxGrammarBytes
	select {
	case <-c.done:
	default: // whoever asks for it from here on begins anew
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

// compile makes c, unless nobody waits for it when its turn comes.
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

// grammar is g compiled, nil of nil. Its error is of its field. What one takes that was not
// there is the request's until it ends.
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
