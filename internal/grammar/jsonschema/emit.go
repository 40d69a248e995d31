package jsonschema

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// symbolOf returns the rule of a goal. It is expanded when a text first reaches it.
func (c *compiler) symbolOf(g *goal) grammar.Symbol {
	if g.symbol.IsZero() {
		g.symbol = c.b.Lazy(g.path, func() [][]grammar.Symbol {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.rulesOf(g)
		})
	}
	return g.symbol
}

// rulesOf returns the alternatives of a goal.
func (c *compiler) rulesOf(g *goal) [][]grammar.Symbol {
	var out [][]grammar.Symbol
	for _, e := range c.lexemesOf(g.scalars) {
		out = append(out, []grammar.Symbol{c.b.Lexeme(e)})
	}
	for _, f := range g.arrays {
		if f.inhabited() {
			out = append(out, []grammar.Symbol{c.leftBracket, c.itemsOf(f)})
		}
	}
	for _, f := range g.objects {
		if f.inhabited() {
			out = append(out, []grammar.Symbol{c.leftBrace, c.membersOf(f)})
		}
	}
	return out
}

// lexemesOf returns the texts of scalars.
func (c *compiler) lexemesOf(s scalars) []rx.Expr {
	var words []rx.Expr
	for _, w := range []struct {
		on   bool
		text string
	}{{s.null, "null"}, {s.yes, "true"}, {s.no, "false"}} {
		if w.on {
			words = append(words, c.space.Literal(w.text))
		}
	}
	var out []rx.Expr
	if words != nil {
		out = append(out, c.space.Or(words...))
	}
	if !c.numbers.isNothing(s.numbers) {
		out = append(out, c.numbers.written(s.numbers))
	}
	if !s.strings.isNothing(c.strings) {
		out = append(out, c.stringLexeme(s.strings))
	}
	return out
}

func (c *compiler) stringLexeme(set stringSet) rx.Expr {
	spelling := c.strings
	if set.form == formRange {
		spelling = c.free
	}
	return spelling.quoted(set.spelled(spelling))
}
