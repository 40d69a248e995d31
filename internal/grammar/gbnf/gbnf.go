// Package gbnf parses GBNF, llama.cpp's grammar notation:
//
//	root  ::= item ("," item)*   # the whole text
//	item  ::= [a-z]{1,8} | "\"" [^"\n]+ "\"" | <think> !</think>* </think>
//
// Rules may recurse on any side. A rule may continue over several lines, up to the next name and
// ::=. A regular rule is read as one lexeme.
package gbnf

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
)

// Bounds of a grammar's text: its bytes, the depth of groups and quantifiers, and the counts of
// repetitions.
const (
	maxText  = 1 << 20
	maxDepth = 200
	maxCount = 1 << 24
)

// An Error says what is wrong with a grammar, where, and how to fix it.
type Error struct {
	Line, Column int // from 1; the column in bytes
	Problem      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Compile returns the symbol of the rule root. The error is an *Error, or the builder's if the
// grammar is too large.
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

// everything is the range of all code points.
var everything = rx.RuneRange{Lo: 0, Hi: 0x10FFFF}
