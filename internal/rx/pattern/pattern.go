// Package pattern turns the text of a regular expression into a set of byte
// strings, exactly: anchors, word boundaries and lookarounds are sets too, for
// an rx.Expr has intersection and complement.
//
// A pattern is parsed into a tree (parse*.go), whose characters are then divided
// into the classes that its anchors, word boundaries and lookarounds of one
// character tell apart (classes.go). The tree is compiled from its end to its
// beginning (compile.go): what a node makes of a text is a function of the class
// of the character before it and of the set of texts that may follow, and so a
// lookahead is an intersection with what follows. A repetition of something that
// looks around is the closure of a matrix over such classes (loop.go).
package pattern

import (
	"github.com/realizar/realizar/internal/rx"
)

// A Dialect is a way to write regular expressions.
type Dialect int

const (
	// ECMA is ECMA-262 with the flag u, as JSON Schema uses it. A text fits if
	// the pattern matches any part of it. What the standard calls an error and
	// has one sensible reading, such as \- or a lone }, is read so.
	ECMA Dialect = iota

	// Common is what Python, Rust and RE2 agree on, with lookarounds as in
	// Python. A text fits if the pattern matches all of it. The end $ is the
	// end of the text, also where Python allows a line feed after it, and \d, \w
	// and \s are those of Unicode as Rust defines them.
	Common
)

// Options say how a pattern is read and what its characters are in the text.
type Options struct {
	Dialect Dialect

	// Flags are those in force from the beginning: i, m, s and x.
	Flags string

	// ASCII makes \d, \w, \s and \b those of ASCII in Common. In ECMA they are
	// what that standard says.
	ASCII bool

	// Rune makes the set of texts that stand for one code point out of sorted,
	// disjoint ranges. These may hold surrogates, for an ECMA pattern may name
	// them. No text of one code point may begin a text of another. Without it a
	// code point is its UTF-8 and a surrogate is nothing.
	Rune func(ranges []rx.RuneRange) rx.Expr

	// Any is the set of all texts: any number of any code points. Without it
	// it is made with Rune.
	Any rx.Expr
}

// Bounds of a pattern. They keep the work for one linear in its length and the
// depth of recursion far below what a stack holds.
const (
	maxText  = 1 << 17
	maxDepth = 200
	maxSteps = 1 << 18 // nodes compiled, a repetition unrolled counting each time
)

// Parse returns the set of texts that fit the pattern. It may be empty: nothing
// fits "a^". An error is an *Error, or the Space's when that is full.
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
