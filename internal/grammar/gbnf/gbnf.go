// Package gbnf reads GBNF, llama.cpp's notation of grammars:
//
//	root  ::= item ("," item)*   # what the whole text is
//	item  ::= [a-z]{1,8} | "\"" [^"\n]+ "\"" | <think> !</think>* </think>
//
// Rules may recurse on any side. A rule may go on over lines, up to the next
// name and ::=. A rule that is regular is read as one lexeme.
package gbnf

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
)

// Bounds of a grammar's text.
const (
	maxText  = 1 << 20
	maxDepth = 200
	maxCount = 1 << 24
)

// An Error says what is wrong with a grammar, where, and what would work.
type Error struct {
	Line, Column int // from 1; the column in bytes
	Problem      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Compile returns the symbol of the rule root. An error is an *Error, or the
// builder's where the grammar is too large.
func Compile(b *grammar.Builder, text string) (grammar.Symbol, error) {
	p := &parser{b: b, s: b.Space(), text: text, index: map[string]int{}}
	if err := p.parse(); err != nil {
		return grammar.Symbol{}, err
	}
	rules := make([]ebnf.Rule, len(p.rules))
	for i, r := range p.rules {
		if r.body == nil {
			return grammar.Symbol{}, p.errorf(r.at, "the rule %s is not defined; add a line %s ::= ...", r.name, r.name)
		}
		rules[i] = ebnf.Rule{Name: r.name, Body: r.body}
	}
	root, ok := p.index["root"]
	if !ok {
		return grammar.Symbol{}, p.errorf(0, "there is no rule root; name the rule for the whole text root")
	}
	symbol, err := ebnf.Compile(b, rules, root)
	var endless *ebnf.Endless
	if errors.As(err, &endless) {
		return grammar.Symbol{}, p.errorf(p.rules[endless.Rule].at, "%v", err)
	}
	return symbol, err
}

// everything is all code points.
var everything = rx.RuneRange{Lo: 0, Hi: 0x10FFFF}
