// Package lark parses the grammar notation that llguidance documents, a variant of the notation of
// the Python library Lark:
//
//	start: item ("," item)*
//	item: NAME | %json {"type": "integer"} | <|special|>
//	NAME: /[a-z]+/ & ~("if" | "else")
//	%ignore /[ \t]+/
//
// Names of rules are lower case, names of terminals upper case. A terminal is one lexeme. Text that
// %ignore names may follow every lexeme of a rule.
//
// The language is that of the rules, with one addition for [lazy] and [suffix]: if a lazy lexeme
// and another may begin at the same position, the other must not contain a complete text of the
// lazy one at its beginning.
package lark

import (
	"errors"
	"fmt"
	"strings"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
)

// Bounds of a grammar's text.
const (
	maxText   = 1 << 20
	maxDepth  = 200
	maxCount  = 1 << 24
	maxTokens = 4096 // tokens in one <[...]>
	maxLeaves = 2000 // uses of lexemes in a grammar with lazy ones
)

// Options are the notations that the caller supports.
type Options struct {
	// JSON makes the symbol of %json. If it is nil, %json is an error.
	JSON func(schema []byte) (grammar.Symbol, error)
}

// An Error says what is wrong with a grammar, where, and how to fix it.
type Error struct {
	Line, Column int // from 1; the column in bytes
	Problem      string
	Err          error // nil, or the error of an embedded notation
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

func (e *Error) Unwrap() error { return e.Err }

// Compile returns the symbol of the rule start. The error is an *Error, or the builder's if the
// grammar is too large.
func Compile(b *grammar.Builder, text string, o Options) (grammar.Symbol, error) {
	f := &file{text: text}
	p := &parser{file: f, defined: map[string]int{}}
	if err := p.parse(); err != nil {
		return grammar.Symbol{}, err
	}
	c := &compiler{file: f, b: b, s: b.Space(), o: o, options: p.options, terms: map[string]*term{}, rules: map[string]int{}}
	rules, err := c.compile(p.definitions, p.ignored)
	if err != nil {
		return grammar.Symbol{}, err
	}
	symbol, err := ebnf.Compile(b, rules, c.rules["start"])
	var endless *ebnf.Endless
	if errors.As(err, &endless) {
		return grammar.Symbol{}, f.errorf(c.bodies[endless.Rule].at, "%v", err)
	}
	return symbol, err
}

// A file is the text of a grammar.
type file struct{ text string }

func (f *file) errorf(at int, format string, args ...any) error {
	return f.problem(at, fmt.Sprintf(format, args...))
}

func (f *file) problem(at int, text string) *Error {
	before := f.text[:min(at, len(f.text))]
	return &Error{
		Line:    1 + strings.Count(before, "\n"),
		Column:  len(before) - strings.LastIndexByte(before, '\n'),
		Problem: text,
	}
}

// wrap returns an Error at a position for an error of an embedded notation.
func (f *file) wrap(at int, what string, err error) error {
	e := f.problem(at, fmt.Sprintf("%s: %v", what, err))
	e.Err = err
	return e
}

var everything = rx.RuneRange{Lo: 0, Hi: 0x10FFFF}
