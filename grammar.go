package realizar

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	infer "github.com/google/jsonschema-go/jsonschema"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/gbnf"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
	"github.com/realizar/realizar/internal/grammar/lark"
	"github.com/realizar/realizar/internal/grammar/tags"
	"github.com/realizar/realizar/internal/rx"
	"github.com/realizar/realizar/internal/rx/pattern"
)

// A Grammar is the texts that an answer may be: see [Generation.Grammar]. Many requests
// may use one at a time, and share the work that it takes.
type Grammar struct {
	compile func(b *grammar.Builder) (grammar.Symbol, error)

	mu  sync.Mutex
	now weak.Pointer[compiledGrammar]
}

// A compiledGrammar is a grammar ready for use. What texts add to one that is shared for long
// may come to its limits; then it is worn, and the next request has it compiled anew. So it is
// where [grammarMemory] has no room for it.
type compiledGrammar struct {
	symbol  grammar.Symbol
	whole   *grammar.Grammar
	content *compiledGrammar // that it is made of, beside its own symbols
	worn    atomic.Bool
	counted atomic.Int64 // bytes that it kept: see grammarMemory
}

// newCompiled makes the grammar of a symbol, which may be made of content beside its own
// symbols.
func newCompiled(compile func(b *grammar.Builder) (grammar.Symbol, error), content *compiledGrammar) (*compiledGrammar, error) {
	b := grammar.NewBuilder(grammarLimits)
	symbol, err := compile(b)
	if err != nil {
		return nil, grammarError(err)
	}
	whole, err := b.Grammar(symbol)
	if err != nil {
		return nil, grammarError(err)
	}
	c := &compiledGrammar{symbol: symbol, whole: whole, content: content}
	keptGrammars.use(c)
	return c, nil
}

// size is the bytes that c takes, about.
func (c *compiledGrammar) size() int64 {
	if c == nil {
		return 0
	}
	return c.whole.Bytes() + c.content.size()
}

// failed notes an error of c's states, and is that error for the request.
func (c *compiledGrammar) failed(err error) error {
	if errors.Is(err, grammar.ErrLimit) {
		c.worn.Store(true)
		return fmt.Errorf("realizar: %w: %w", ErrGrammar, err)
	}
	return err
}

// JSONOptions say how JSON is written that a schema describes.
type JSONOptions struct {
	Space JSONSpace
	// AnyOrder lets the properties of an object come in any order. Else they come as the
	// schema lists them, and those that it does not list last.
	AnyOrder bool
	// AnySpelling lets names and constants be written with any escapes. Else they have one
	// spelling, so that what is certain of a text need not be chosen.
	AnySpelling bool
	// Strict refuses schemas that OpenAI's strict mode refuses.
	Strict bool
}

// JSONSpace is the white space between the parts of a JSON text.
type JSONSpace uint8

// The kinds of white space.
const (
	// JSONSpaceNatural is what people write: a space, or a line break with indentation.
	JSONSpaceNatural JSONSpace = iota
	// JSONSpaceNone is none.
	JSONSpaceNone
	// JSONSpaceAny is all that JSON allows, up to 64 characters in a row.
	JSONSpaceAny
)

var jsonSpaces = []jsonschema.Whitespace{JSONSpaceNatural: jsonschema.NaturalWhitespace, JSONSpaceNone: jsonschema.CompactWhitespace, JSONSpaceAny: jsonschema.AnyWhitespace}

func (o JSONOptions) schema() jsonschema.Options {
	s := jsonschema.Options{Whitespace: jsonSpaces[min(int(o.Space), len(jsonSpaces)-1)], Strict: o.Strict}
	if o.AnyOrder {
		s.Order = jsonschema.AnyOrder
	}
	if o.AnySpelling {
		s.Spelling = jsonschema.AnySpelling
	}
	return s
}

// JSONSchema is the JSON texts whose values a JSON Schema allows. A keyword that cannot be
// enforced is an error that names it and its place.
func JSONSchema(schema []byte, o JSONOptions) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) { return jsonschema.Compile(b, schema, o.schema()) })
}

// JSONObject is the JSON texts of objects.
func JSONObject(o JSONOptions) (*Grammar, error) {
	return JSONSchema([]byte(`{"type": "object"}`), o)
}

// JSONOf is [JSONSchema] of the schema that encoding/json's texts of T have, for an answer
// that is to be decoded into one.
func JSONOf[T any](o JSONOptions) (*Grammar, error) {
	schema, err := infer.For[T](nil)
	if err != nil {
		return nil, grammarError(err)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, grammarError(err)
	}
	return JSONSchema(text, o)
}

// Regexp is the texts that a regular expression matches from beginning to end. Its \d, \w and
// \s are those of ASCII.
func Regexp(text string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) {
		e, err := pattern.Parse(b.Space(), text, pattern.Options{Dialect: pattern.Common, ASCII: true})
		if err != nil {
			return grammar.Symbol{}, err
		}
		return lexeme(b, e, "the regular expression matches no text")
	})
}

// OneOf is the given texts.
func OneOf(texts ...string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) {
		e := rx.Nothing
		for _, text := range texts {
			e = b.Space().Or(e, b.Space().Literal(text))
		}
		return lexeme(b, e, "a choice of no texts; want one at least")
	})
}

// lexeme is a symbol of e, which nothing must not be.
func lexeme(b *grammar.Builder, e rx.Expr, nothing string) (grammar.Symbol, error) {
	if err := b.Space().Err(); err != nil {
		return grammar.Symbol{}, err
	}
	if b.Space().IsEmpty(e) {
		return grammar.Symbol{}, errors.New(nothing)
	}
	return b.Lexeme(e), nil
}

// GBNF is the texts of a grammar in llama.cpp's notation.
func GBNF(text string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) { return gbnf.Compile(b, text) })
}

// StructuralTag is free text with grammars between triggers, as vLLM describes it in JSON.
// Where a trigger is a special token of the model, that token stands for it.
func (m *Model) StructuralTag(text []byte, o JSONOptions) (*Grammar, error) {
	if m.tok == nil {
		return nil, wrap(m.tokErr)
	}
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) {
		return tags.Compile(b, text, tags.Options{
			Schema: func(schema []byte, anyOrder bool) (grammar.Symbol, error) {
				one := o
				one.AnyOrder = o.AnyOrder || anyOrder
				return jsonschema.Compile(b, schema, one.schema())
			},
			Grammar: func(text string) (grammar.Symbol, error) { return notation(b, text) },
			Special: m.special,
		})
	})
}

// notation is the symbol of a grammar in GBNF, which has ::=, or else in that of [Lark].
func notation(b *grammar.Builder, text string) (grammar.Symbol, error) {
	if strings.Contains(text, "::=") {
		return gbnf.Compile(b, text)
	}
	return larkSymbol(b, text)
}

// Lark is the texts of a grammar in the notation of llguidance, which is like that of the
// Python library Lark.
func Lark(text string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) { return larkSymbol(b, text) })
}

func larkSymbol(b *grammar.Builder, text string) (grammar.Symbol, error) {
	return lark.Compile(b, text, lark.Options{JSON: func(schema []byte) (grammar.Symbol, error) {
		return jsonschema.Compile(b, schema, jsonschema.Options{})
	}})
}

// grammarLimits keep a grammar to some 50 MB, and what it makes of texts to some 5.
var grammarLimits = grammar.Limits{Rules: 1 << 18, Expressions: 1 << 18, Sets: 1 << 16, Derivatives: 1 << 14}

func compileGrammar(compile func(b *grammar.Builder) (grammar.Symbol, error)) (*Grammar, error) {
	now, err := newCompiled(compile, nil)
	if err != nil {
		return nil, err
	}
	return &Grammar{compile: compile, now: weak.Make(now)}, nil
}

func grammarError(err error) error { return fmt.Errorf("realizar: %w: %w", ErrRequest, err) }

// A Fit says how a text stands to a grammar.
type Fit struct {
	Bytes int  // of the text that some text of the grammar begins with
	Whole bool // the text is one of the grammar's
}

// Check says how far text fits g.
func (g *Grammar) Check(text []byte) (Fit, error) {
	c, err := g.compiled()
	if err != nil {
		return Fit{}, err
	}
	s := c.whole.Start()
	for i := range text {
		next, ok := s.Bytes(text[i : i+1])
		if !ok {
			return Fit{Bytes: i}, next.Err()
		}
		s = next
	}
	return Fit{Bytes: len(text), Whole: s.Ends()}, nil
}

// compiled is g ready for use; nil of a nil one.
func (g *Grammar) compiled() (*compiledGrammar, error) {
	if g == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.now.Value(); c != nil && !c.worn.Load() {
		return c, nil
	}
	c, err := newCompiled(g.compile, nil)
	g.now = weak.Make(c)
	return c, err
}
