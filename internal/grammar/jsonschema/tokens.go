package jsonschema

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

const (
	indentation = 40 // columns after a line break, in NaturalWhitespace
	spaces      = 64 // characters between tokens, in AnyWhitespace
)

// tokens are the JSON tokens that are not values, with the white space around them.
type tokens struct {
	inside, before, after rx.Expr // white space inside brackets; before, after a comma or colon

	leftBrace, rightBrace     grammar.Symbol
	leftBracket, rightBracket grammar.Symbol
	comma, colon, space       grammar.Symbol
}

func newTokens(b *grammar.Builder, w Whitespace) *tokens {
	s := b.Space()
	t := &tokens{inside: rx.Empty, before: rx.Empty, after: rx.Empty}
	switch w {
	case NaturalWhitespace:
		blank := s.Bytes(rx.BytesOf(' ', '\t'))
		line := s.Concat(s.Or(rx.Empty, s.Literal("\r")), s.Literal("\n"), s.Repeat(blank, 0, indentation))
		t.inside = s.Or(rx.Empty, s.Literal(" "), line)
		t.after = t.inside
	case AnyWhitespace:
		t.inside = s.Repeat(s.Bytes(rx.BytesOf(' ', '\t', '\r', '\n')), 0, spaces)
		t.before, t.after = t.inside, t.inside
	}
	t.leftBrace = b.Lexeme(s.Literal("{"))
	t.rightBrace = b.Lexeme(s.Concat(t.inside, s.Literal("}")))
	t.leftBracket = b.Lexeme(s.Literal("["))
	t.rightBracket = b.Lexeme(s.Concat(t.inside, s.Literal("]")))
	t.comma = b.Lexeme(s.Concat(t.before, s.Literal(","), t.after))
	t.colon = b.Lexeme(s.Concat(t.before, s.Literal(":"), t.after))
	t.space = b.Lexeme(t.inside)
	return t
}

// key returns the text before a member's value: the separator, the name with its quotes, and a
// colon.
func (t *tokens) key(s *rx.Space, name rx.Expr, first bool) rx.Expr {
	return s.Concat(t.lead(s, first), name, t.before, s.Literal(":"), t.after)
}

// lead returns the text before a member or an item: white space, with a comma if it is not the
// first.
func (t *tokens) lead(s *rx.Space, first bool) rx.Expr {
	if first {
		return t.inside
	}
	return s.Concat(t.before, s.Literal(","), t.after)
}
