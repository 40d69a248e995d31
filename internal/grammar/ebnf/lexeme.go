package ebnf

import "github.com/realizar/realizar/internal/rx"

// Bounds of a joined lexeme. Larger parts stay rules.
const (
	maxSize   = 1 << 15
	maxHeight = 200
)

// A lexeme is a node as a set of texts.
type lexeme struct {
	known  bool
	ok     bool // the node is regular and within the bounds
	expr   rx.Expr
	size   int
	height int
}

func (l lexeme) bounded() lexeme {
	l.known = true
	if l.ok = l.ok && l.size <= maxSize && l.height <= maxHeight; !l.ok {
		l.expr, l.size = rx.Nothing, 0
	}
	return l
}

type state byte

const (
	fresh state = iota
	open        // in progress: reaching it again means recursion
	closed
)

// A lexer finds the nodes that are lexemes.
type lexer struct {
	s      *rx.Space
	rules  []Rule
	states []state
}

func (l *lexer) ruleLexeme(i int) lexeme {
	switch l.states[i] {
	case open:
		return lexeme{}
	case fresh:
		l.states[i] = open
		l.lexeme(l.rules[i].Body)
		l.states[i] = closed
	}
	return l.rules[i].Body.lexeme
}

func (l *lexer) lexeme(n *Node) lexeme {
	if n.lexeme.known {
		return n.lexeme
	}
	x := lexeme{ok: true, size: 1}
	switch n.kind {
	case kindLexeme:
		x.expr, x.size = n.expr, min(n.lexeme.size, maxSize) // it cannot be split
	case kindSymbol:
		x.ok = false
	case kindRef:
		x = l.ruleLexeme(n.rule)
		x.height++
	default:
		parts := make([]rx.Expr, len(n.subs))
		for i, sub := range n.subs {
			y := l.lexeme(sub)
			parts[i] = y.expr
			x.ok = x.ok && y.ok
			x.size += y.size
			x.height = max(x.height, y.height+1)
		}
		if x = x.bounded(); !x.ok {
			break
		}
		switch n.kind {
		case kindCat:
			x.expr = l.s.Concat(parts...)
		case kindAlt:
			x.expr = l.s.Or(parts...)
		default:
			x.expr = l.s.Repeat(parts[0], n.min, n.max)
		}
	}
	n.lexeme = x.bounded()
	return n.lexeme
}
