package tags

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/realizar/realizar/internal/grammar"
)

// Bounds of structural tags in JSON: bytes of text, and depth of formats.
const (
	maxText  = 4 << 20
	maxDepth = 100
)

// Options are the notations that tags may embed. If one is nil, its format is an error.
type Options struct {
	Schema  func(schema []byte, anyOrder bool) (grammar.Symbol, error)
	Grammar func(text string) (grammar.Symbol, error)

	// Special reports whether a text is that of one special token of the vocabulary. In the begin
	// and end of a tag, the token stands for the text.
	Special func(text string) bool
}

// An Error says what is wrong with structural tags in JSON, and where.
type Error struct {
	Path    string // for example format.tags[0].content
	Problem string
	Err     error // nil, or the error of an embedded notation
}

func (e *Error) Error() string { return fmt.Sprintf("structural_tag: %s: %s", e.Path, e.Problem) }

func (e *Error) Unwrap() error { return e.Err }

// Compile returns the symbol of {"type": "structural_tag", "format": {...}}, or of the older form
// with "structures" and "triggers".
func Compile(b *grammar.Builder, text []byte, o Options) (grammar.Symbol, error) {
	r := &reader{maker: maker{b: b, s: b.Space(), special: o.Special}, o: o}
	if len(text) > maxText {
		return grammar.Symbol{}, fail(place{}, "it has %d bytes; at most %d work", len(text), maxText)
	}
	var outer struct {
		Type       string          `json:"type"`
		Format     json.RawMessage `json:"format"`
		Structures []struct {
			Begin  string          `json:"begin"`
			Schema json.RawMessage `json:"schema"`
			End    string          `json:"end"`
		} `json:"structures"`
		Triggers []string `json:"triggers"`
	}
	if err := strict(place{}, text, &outer); err != nil {
		return grammar.Symbol{}, err
	}
	if outer.Type != "structural_tag" {
		return grammar.Symbol{}, fail(place{}, `the type is %q; it must be "structural_tag"`, outer.Type)
	}
	if outer.Format != nil {
		if outer.Structures != nil || outer.Triggers != nil {
			return grammar.Symbol{}, fail(place{}, "format cannot stand beside structures and triggers")
		}
		all, err := r.format(place{path: "format"}, outer.Format)
		if err != nil {
			return grammar.Symbol{}, err
		}
		return r.rule(all), b.Space().Err()
	}
	if outer.Structures == nil || outer.Triggers == nil {
		return grammar.Symbol{}, fail(place{}, "it needs a format, or structures and triggers")
	}
	d := dispatch{triggers: outer.Triggers}
	for i, x := range outer.Structures {
		at := place{path: fmt.Sprintf("structures[%d]", i)}
		content, err := r.schema(at, x.Schema, false)
		if err != nil {
			return grammar.Symbol{}, err
		}
		d.branches = append(d.branches, branch{begin: x.Begin, rest: append([]grammar.Symbol{content}, r.text(x.End)...)})
	}
	all, err := r.dispatchAt(place{path: "structures"}, d)
	if err != nil {
		return grammar.Symbol{}, err
	}
	return r.rule(all), b.Space().Err()
}

// A place is the position of a format in the JSON, with its context.
type place struct {
	path   string
	depth  int
	ends   []string // ends of the enclosing tag, which free text must not contain
	tokens tokenSet // ends that are tokens
}

func (p place) in(format string, args ...any) place {
	p.path += fmt.Sprintf(format, args...)
	p.depth++
	return p
}

func fail(at place, format string, args ...any) error {
	if at.path == "" {
		at.path = "the whole"
	}
	return &Error{Path: at.path, Problem: fmt.Sprintf(format, args...)}
}

func wrap(at place, err error) error {
	var inner *Error
	if errors.As(err, &inner) {
		return err
	}
	return &Error{Path: at.path, Problem: err.Error(), Err: err}
}

// strict decodes JSON and refuses unknown fields.
func strict(at place, text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fail(at, "%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fail(at, "something follows the JSON")
	}
	return nil
}

// A reader turns formats into symbols.
type reader struct {
	maker
	o Options
}

func (r *reader) schema(at place, schema json.RawMessage, anyOrder bool) (grammar.Symbol, error) {
	if r.o.Schema == nil {
		return grammar.Symbol{}, fail(at, "a JSON schema is not supported here")
	}
	if schema == nil {
		return grammar.Symbol{}, fail(at, "the schema is missing")
	}
	s, err := r.o.Schema(schema, anyOrder)
	if err != nil {
		return s, wrap(at, err)
	}
	return s, nil
}

func (r *reader) dispatchAt(at place, d dispatch) ([][]grammar.Symbol, error) {
	all, err := r.dispatch(d)
	if err != nil {
		return nil, wrap(at, err)
	}
	return all, nil
}
