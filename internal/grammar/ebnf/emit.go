package ebnf

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// An emitter makes symbols of nodes.
type emitter struct {
	b       *grammar.Builder
	rules   []Rule
	symbols []grammar.Symbol // of rules, as far as made
	pending []int            // rules to be defined
}

func (e *emitter) ref(rule int) grammar.Symbol {
	if x := e.rules[rule].Body.lexeme; x.ok {
		return e.b.Lexeme(x.expr)
	}
	if e.symbols[rule].IsZero() {
		e.symbols[rule] = e.b.Rule(e.rules[rule].Name)
		e.pending = append(e.pending, rule)
	}
	return e.symbols[rule]
}

// alternatives are those of a node, lexemes among them joined.
func (e *emitter) alternatives(n *Node) [][]grammar.Symbol {
	if n.kind != kindAlt {
		return [][]grammar.Symbol{e.sequence(n)}
	}
	var out [][]grammar.Symbol
	var run joined
	for _, sub := range n.subs {
		if run.add(sub) {
			continue
		}
		if sub.lexeme.ok { // one too many
			out = append(out, []grammar.Symbol{e.b.Lexeme(e.b.Space().Or(run.exprs...))})
			run = joined{}
			run.add(sub)
			continue
		}
		out = append(out, e.sequence(sub))
	}
	if len(run.exprs) > 0 {
		out = append(out, []grammar.Symbol{e.b.Lexeme(e.b.Space().Or(run.exprs...))})
	}
	return out
}

// sequence is a node as symbols one after another, lexemes that stand side by
// side joined.
func (e *emitter) sequence(n *Node) []grammar.Symbol {
	var out []grammar.Symbol
	var run joined
	flush := func() {
		if len(run.exprs) > 0 {
			out = append(out, e.b.Lexeme(e.b.Space().Concat(run.exprs...)))
			run = joined{}
		}
	}
	var walk func(n *Node)
	walk = func(n *Node) {
		switch {
		case n.lexeme.ok:
			if !run.add(n) {
				flush()
				run.add(n)
			}
		case n.kind == kindCat:
			for _, sub := range n.subs {
				walk(sub)
			}
		default:
			flush()
			out = append(out, e.one(n))
		}
	}
	walk(n)
	flush()
	return out
}

// joined are lexemes that become one.
type joined struct {
	exprs []rx.Expr
	size  int
}

// add reports whether n is a lexeme that fits in.
func (j *joined) add(n *Node) bool {
	if !n.lexeme.ok || len(j.exprs) > 0 && j.size+n.lexeme.size > maxSize {
		return false
	}
	j.exprs = append(j.exprs, n.lexeme.expr)
	j.size += n.lexeme.size
	return true
}

// one is a node as one symbol.
func (e *emitter) one(n *Node) grammar.Symbol {
	switch {
	case n.lexeme.ok:
		return e.b.Lexeme(n.lexeme.expr)
	case n.kind == kindSymbol:
		return n.symbol
	case n.kind == kindRef:
		return e.ref(n.rule)
	case n.kind == kindRepeat:
		return Times(e.b, e.one(n.subs[0]), n.min, n.max)
	}
	all := e.alternatives(n)
	if len(all) == 1 && len(all[0]) == 1 {
		return all[0][0]
	}
	rule := e.b.Rule("")
	e.b.Define(rule, all...)
	return rule
}

// Times is min to max times a symbol, max < 0 without bound. A repetition with
// a bound is made as far as texts go, so that large counts cost nothing.
func Times(b *grammar.Builder, x grammar.Symbol, min, max int) grammar.Symbol {
	last := grammar.Symbol{}
	if max < 0 {
		last = b.Rule("")
		if min == 0 {
			b.Define(last, nil, []grammar.Symbol{last, x})
		} else {
			b.Define(last, []grammar.Symbol{x}, []grammar.Symbol{last, x})
			min--
		}
	}
	return chain(b, x, min, max, last)
}

// chain is atLeast to atMost times x, or with last, atLeast times x and then last.
func chain(b *grammar.Builder, x grammar.Symbol, atLeast, atMost int, last grammar.Symbol) grammar.Symbol {
	if atLeast == 0 && !last.IsZero() {
		return last
	}
	return b.Lazy("", func() [][]grammar.Symbol {
		var all [][]grammar.Symbol
		if atLeast == 0 {
			all = append(all, nil)
		}
		if atMost != 0 {
			all = append(all, []grammar.Symbol{x, chain(b, x, max(atLeast-1, 0), atMost-1, last)})
		}
		return all
	})
}
