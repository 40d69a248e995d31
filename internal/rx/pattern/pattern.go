// Package pattern turns a regular expression into an exact set of byte strings. Anchors, word
// boundaries and lookarounds are exact as well, because an rx.Expr supports intersection and
// complement.
//
// The parser builds a tree (parse*.go). The code points are then partitioned into the classes that
// the anchors, word boundaries and one-character lookarounds of the tree distinguish (classes.go).
// The tree is compiled from its end to its beginning (compile.go): the texts of a node are a
// function of the class of the preceding character and of the set of texts that may follow, so a
// lookahead is an intersection with what follows. A repetition of a node with assertions is the
// closure of a matrix over the classes (loop.go).
package pattern

import (
	"github.com/realizar/realizar/internal/rx"
)

// A Dialect is a regular expression syntax.
type Dialect int

const (
	// ECMA is ECMA-262 with the flag u, as JSON Schema uses it. A pattern matches a text if it
	// matches any part of it. Syntax that the standard forbids but that has one sensible meaning,
	// such as \- or a lone }, is accepted.
	ECMA Dialect = iota

	// Common is the syntax that Python, Rust and RE2 agree on, with lookarounds as in Python. A
	// pattern matches a text if it matches all of it. $ matches only at the end of the text, even
	// where Python allows a line feed after it. \d, \w and \s are Unicode sets as Rust defines
	// them.
	Common
)

// Options say how a pattern is parsed and how its characters are written in texts.
type Options struct {
	Dialect Dialect

	// Flags are in force from the beginning: i, m, s and x.
	Flags string

	// ASCII limits \d, \w, \s and \b to ASCII in Common. In ECMA they are as the standard defines
	// them.
	ASCII bool

	// Rune returns the texts for one code point of the ranges, which are sorted and disjoint. The
	// ranges may contain surrogates, because an ECMA pattern may name them. No text of one code
	// point may be a prefix of a text of another. If Rune is nil, a code point is its UTF-8
	// encoding and a surrogate has no text.
	Rune func(ranges []rx.RuneRange) rx.Expr

	// Any is the set of all texts: any number of any code points. If it is zero, it is made with
	// Rune.
	Any rx.Expr
}

// Bounds of a pattern. They keep the work linear in its length and the depth of recursion far below
// the stack limit.
const (
	maxText  = 1 << 17
	maxDepth = 200
	maxSteps = 1 << 18 // compiled nodes; each round of an unrolled repetition counts
)

// Parse returns the set of texts that match the pattern. The set may be empty: nothing matches
// "a^". The error is an *Error, or the Space's if the Space is full.
func Parse(s *rx.Space, text string, o Options) (rx.Expr, error) {
	p := &parser{text: text, o: o}
	tree, err := p.parse()
	if err != nil {
		return rx.Nothing, err
	}
	c, err := newCompiler(s, text, o, tree)
	if err != nil {
		return rx.Nothing, err
	}
	e, err := c.whole(tree)
	if err != nil {
		return rx.Nothing, err
	}
	if err := s.Err(); err != nil {
		return rx.Nothing, err
	}
	return e, nil
}
