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

// A Grammar is a set of texts that constrains an answer: see [Generation.Grammar]. It is safe for
// concurrent use. Requests that use the same Grammar share its compiled form and its token masks.
type Grammar struct {
	compile func(b *grammar.Builder) (grammar.Symbol, error)

	mu  sync.Mutex
	now weak.Pointer[compiledGrammar]
}

// A compiledGrammar is a grammar ready for use. It grows with the texts that it matches. When it
// reaches its limits it is worn, and the next request compiles the grammar again. The same happens
// if [grammarMemory] drops it.
type compiledGrammar struct {
	symbol  grammar.Symbol
	whole   *grammar.Grammar
	content *compiledGrammar // a grammar that this one contains, or nil
	worn    atomic.Bool
	counted atomic.Int64 // size in bytes when grammarMemory last counted it
}

// newCompiled compiles the grammar of the symbol that compile returns. content is the grammar that
// the symbol contains, or nil.
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

// size returns about how many bytes c takes.
func (c *compiledGrammar) size() int64 {
	if c == nil {
		return 0
	}
	return c.whole.Bytes() + c.content.size()
}

// failed returns err, an error of a state of c, for the request. It marks c as worn if err is a
// limit.
func (c *compiledGrammar) failed(err error) error {
	if errors.Is(err, grammar.ErrLimit) {
		c.worn.Store(true)
		return fmt.Errorf("realizar: %w: %w", ErrGrammar, err)
	}
	return err
}

// JSONOptions say which of the JSON texts of a value a grammar allows.
type JSONOptions struct {
	Space JSONSpace
	// AnyOrder allows the properties of an object in any order. If false, they come in the order
	// of the schema, followed by properties that the schema does not list.
	AnyOrder bool
	// AnySpelling allows any escapes in names and constants. If false, each has one spelling, so
	// that the engine can append certain text without sampling its tokens.
	AnySpelling bool
	// Strict rejects schemas that OpenAI's strict mode rejects.
	Strict bool
}

// JSONSpace says which white space a JSON text may have between its parts.
type JSONSpace uint8

// The kinds of white space.
const (
	// JSONSpaceNatural allows the usual white space: a space, or a line break with indentation.
	JSONSpaceNatural JSONSpace = iota
	// JSONSpaceNone allows none.
	JSONSpaceNone
	// JSONSpaceAny allows all white space of JSON, up to 64 characters in a row.
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

// JSONSchema returns the grammar of the JSON texts that are valid under a JSON Schema. If the
// schema has a keyword that cannot be enforced, the error names the keyword and its place. Errors
// wrap [ErrRequest].
func JSONSchema(schema []byte, o JSONOptions) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) { return jsonschema.Compile(b, schema, o.schema()) })
}

// JSONObject returns the grammar of the JSON texts of all objects.
func JSONObject(o JSONOptions) (*Grammar, error) {
	return JSONSchema([]byte(`{"type": "object"}`), o)
}

// JSONOf returns the grammar of the JSON texts that [json.Unmarshal] decodes into a T. It is
// [JSONSchema] with a schema inferred from T.
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

// Regexp returns the grammar of the texts that a regular expression matches from beginning to end.
// The classes \d, \w and \s have ASCII characters only. Errors wrap [ErrRequest].
func Regexp(text string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) {
		e, err := pattern.Parse(b.Space(), text, pattern.Options{Dialect: pattern.Common, ASCII: true})
		if err != nil {
			return grammar.Symbol{}, err
		}
		return lexeme(b, e, "the regular expression matches no text")
	})
}

// OneOf returns the grammar of the given texts. It is an error if there are none.
func OneOf(texts ...string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) {
		e := rx.Nothing
		for _, text := range texts {
			e = b.Space().Or(e, b.Space().Literal(text))
		}
		return lexeme(b, e, "a choice of no texts; want one at least")
	})
}

// lexeme returns a symbol of e, or an error with the text nothing if e matches no text.
func lexeme(b *grammar.Builder, e rx.Expr, nothing string) (grammar.Symbol, error) {
	if err := b.Space().Err(); err != nil {
		return grammar.Symbol{}, err
	}
	if b.Space().IsEmpty(e) {
		return grammar.Symbol{}, errors.New(nothing)
	}
	return b.Lexeme(e), nil
}

// GBNF returns a grammar written in llama.cpp's GBNF notation. Errors wrap [ErrRequest].
func GBNF(text string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) { return gbnf.Compile(b, text) })
}

// StructuralTag returns the grammar of a structural tag, which vLLM defines as JSON: free text, and
// grammars that apply between triggers. A trigger that is the text of a special token of m matches
// that token. Errors wrap [ErrRequest], or [ErrNoTokenizer] if m has no tokenizer.
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

// notation returns the symbol of a grammar in GBNF if text has "::=", and in Lark's notation
// otherwise.
func notation(b *grammar.Builder, text string) (grammar.Symbol, error) {
	if strings.Contains(text, "::=") {
		return gbnf.Compile(b, text)
	}
	return larkSymbol(b, text)
}

// Lark returns a grammar written in llguidance's notation, a variant of that of the Python library
// Lark. Errors wrap [ErrRequest].
func Lark(text string) (*Grammar, error) {
	return compileGrammar(func(b *grammar.Builder) (grammar.Symbol, error) { return larkSymbol(b, text) })
}

func larkSymbol(b *grammar.Builder, text string) (grammar.Symbol, error) {
	return lark.Compile(b, text, lark.Options{JSON: func(schema []byte) (grammar.Symbol, error) {
		return jsonschema.Compile(b, schema, jsonschema.Options{})
	}})
}

// grammarLimits limit a grammar to about 50 MB, and what matching texts adds to it to about 5 MB.
var grammarLimits = grammar.Limits{Rules: 1 << 18, Expressions: 1 << 18, Sets: 1 << 16, Derivatives: 1 << 14}

func compileGrammar(compile func(b *grammar.Builder) (grammar.Symbol, error)) (*Grammar, error) {
	now, err := newCompiled(compile, nil)
	if err != nil {
		return nil, err
	}
	return &Grammar{compile: compile, now: weak.Make(now)}, nil
}

func grammarError(err error) error { return fmt.Errorf("realizar: %w: %w", ErrRequest, err) }

// A Fit says how far a text matches a grammar.
type Fit struct {
	Bytes int  // length of the longest prefix of the text that begins a text of the grammar
	Whole bool // the whole text is a text of the grammar
}

// Check returns how far text matches g. The error is that of a limit of the grammar.
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

// compiled returns g's compiled form, and compiles g if there is none or it is worn. It returns nil
// if g is nil.
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
