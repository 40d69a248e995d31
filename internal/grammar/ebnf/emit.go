package ebnf

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// An emitter turns nodes into symbols.
type emitter struct {
	b       *grammar.Builder
	rules   []Rule
	symbols []grammar.Symbol // of rules; zero if not made yet
	pending []int            // rules to define
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

// alternatives returns the alternatives of a node. It joins lexemes among them.
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
		if sub.lexeme.ok { // the joined lexeme is full
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

// sequence returns a node as a sequence of symbols. It joins adjacent lexemes.
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

// joined collects lexemes that become one.
type joined struct {
	exprs []rx.Expr
	size  int
}

// add adds n and returns true if n is a lexeme and fits within maxSize.
func (j *joined) add(n *Node) bool {
	if !n.lexeme.ok || len(j.exprs) > 0 && j.size+n.lexeme.size > maxSize {
		return false
	}
	j.exprs = append(j.exprs, n.lexeme.expr)
	j.size += n.lexeme.size
	return true
}

// one returns a node as one symbol.
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

// Times returns a symbol that matches x min to max times; max < 0 means no bound. Bounded
// repetitions are expanded only as far as a text reaches, so large counts cost nothing.
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

// chain returns x repeated atLeast to atMost times, or if last is set, atLeast times and then last.
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
