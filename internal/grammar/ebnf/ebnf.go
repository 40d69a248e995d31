// Package ebnf turns rules with sequences, alternatives and repetitions into symbols of a grammar.
// It turns regular parts into single lexemes, which are read much faster than rules. The language
// stays the same.
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

// A Node is a part of a rule. A node must occur in one place of one rule only.
type Node struct {
	kind     kind
	expr     rx.Expr
	symbol   grammar.Symbol
	rule     int
	subs     []*Node
	min, max int

	lexeme lexeme
}

// Lexeme returns a node for a set of texts, which must not be empty. size is approximately the
// number of expressions in e.
func Lexeme(e rx.Expr, size int) *Node {
	return &Node{kind: kindLexeme, expr: e, lexeme: lexeme{size: size}}
}

// Symbol returns a node for an existing symbol.
func Symbol(s grammar.Symbol) *Node { return &Node{kind: kindSymbol, symbol: s} }

// Ref returns a node for the rule with this index.
func Ref(rule int) *Node { return &Node{kind: kindRef, rule: rule} }

// Cat returns a sequence of nodes. Without nodes it matches the empty text.
func Cat(subs ...*Node) *Node {
	if len(subs) == 1 {
		return subs[0]
	}
	return &Node{kind: kindCat, subs: subs}
}

// Alt returns a choice of nodes.
func Alt(subs ...*Node) *Node {
	if len(subs) == 1 {
		return subs[0]
	}
	return &Node{kind: kindAlt, subs: subs}
}

// Repeat returns a node that matches sub min to max times; max < 0 means no bound.
func Repeat(sub *Node, min, max int) *Node {
	return &Node{kind: kindRepeat, subs: []*Node{sub}, min: min, max: max}
}

// A Rule is a node with a name for error messages.
type Rule struct {
	Name string
	Body *Node
}

// Compile returns the symbol of the rule with index start. Each Ref must be a valid index of rules.
// The error is an *Endless or one of the builder's.
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

// reach reports for each rule whether the start rule refers to it, directly or indirectly.
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
