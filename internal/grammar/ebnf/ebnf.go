// Package ebnf turns rules written with sequences, alternatives and repetitions
// into symbols of a grammar. What is regular becomes single lexemes, for these
// are read much faster than rules; the language stays the same.
package ebnf

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

type kind byte

const (
	kindLexeme kind = iota
	kindSymbol
	kindRef
	kindCat
	kindAlt
	kindRepeat
)

// A Node is a part of a rule. A node stands in one place of one rule.
type Node struct {
	kind     kind
	expr     rx.Expr
	symbol   grammar.Symbol
	rule     int
	subs     []*Node
	min, max int

	lexeme lexeme
}

// Lexeme is a set of texts, which must not be empty. Its size is about the
// number of expressions in it.
func Lexeme(e rx.Expr, size int) *Node {
	return &Node{kind: kindLexeme, expr: e, lexeme: lexeme{size: size}}
}

// Symbol is a symbol made elsewhere.
func Symbol(s grammar.Symbol) *Node { return &Node{kind: kindSymbol, symbol: s} }

// Ref is the rule with this index.
func Ref(rule int) *Node { return &Node{kind: kindRef, rule: rule} }

// Cat is one node after another; none is the empty text.
func Cat(subs ...*Node) *Node {
	if len(subs) == 1 {
		return subs[0]
	}
	return &Node{kind: kindCat, subs: subs}
}

// Alt is one of the nodes.
func Alt(subs ...*Node) *Node {
	if len(subs) == 1 {
		return subs[0]
	}
	return &Node{kind: kindAlt, subs: subs}
}

// Repeat is min to max times a node, max < 0 without bound.
func Repeat(sub *Node, min, max int) *Node {
	return &Node{kind: kindRepeat, subs: []*Node{sub}, min: min, max: max}
}

// A Rule is a node with a name, which stands in errors.
type Rule struct {
	Name string
	Body *Node
}

// Compile returns the symbol of the rule with index start. Each Ref must be an
// index into rules. An error is an *Endless or one of the builder's.
func Compile(b *grammar.Builder, rules []Rule, start int) (grammar.Symbol, error) {
	reached := reach(rules, start)
	if i := endless(rules, reached); i >= 0 {
		return grammar.Symbol{}, &Endless{Rule: i, Name: rules[i].Name}
	}
	l := &lexer{s: b.Space(), rules: rules, states: make([]state, len(rules))}
	for i, ok := range reached {
		if ok {
			l.ruleLexeme(i)
		}
	}
	if err := b.Space().Err(); err != nil {
		return grammar.Symbol{}, err
	}
	e := &emitter{b: b, rules: rules, symbols: make([]grammar.Symbol, len(rules))}
	symbol := e.ref(start)
	for len(e.pending) > 0 {
		i := e.pending[len(e.pending)-1]
		e.pending = e.pending[:len(e.pending)-1]
		b.Define(e.symbols[i], e.alternatives(rules[i].Body)...)
	}
	return symbol, b.Space().Err()
}

// reach tells which rules stand in the start rule or below.
func reach(rules []Rule, start int) []bool {
	reached := make([]bool, len(rules))
	reached[start] = true
	list := []int{start}
	for len(list) > 0 {
		i := list[len(list)-1]
		list = list[:len(list)-1]
		rules[i].Body.refs(func(rule int) {
			if !reached[rule] {
				reached[rule] = true
				list = append(list, rule)
			}
		})
	}
	return reached
}

func (n *Node) refs(visit func(rule int)) {
	if n.kind == kindRef {
		visit(n.rule)
	}
	for _, sub := range n.subs {
		sub.refs(visit)
	}
}
