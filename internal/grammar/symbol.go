package grammar

import (
	"sync"
	"sync/atomic"

	"github.com/realizar/realizar/internal/rx"
)

// A Symbol is a terminal or a rule. One grammar may contain symbols of several builders.
type Symbol struct{ s *symbol }

// IsZero reports whether s is the zero Symbol.
func (s Symbol) IsZero() bool { return s.s == nil }

type kind uint8

const (
	lexemeKind  kind = iota
	specialKind      // a special token, or its text
	tokenKind        // tokens by number
	ruleKind
)

type symbol struct {
	kind     kind
	nullable atomic.Int32 // of a rule: unknown, no or yes
	seq      uint64       // unique
	name     string       // of a rule, or the text of a special token
	builder  *Builder

	// Fields of terminals.
	id    int32 // of the lexeme in the builder's automaton
	expr  rx.Expr
	empty bool                     // whether expr contains ""
	next  func(text []byte) Symbol // of a Then
	fits  func(text []byte) bool   // of a Bind; nil accepts all texts
	late  *symbol                  // of a Bind
	match tokenMatch

	// Fields of rules.
	alternatives atomic.Pointer[[]*alternative]
	expand       func() [][]Symbol
	rest         func(text []byte) Symbol // of a late symbol of Bind: returns the symbol after the matched text
	once         sync.Mutex
}

// textMatters reports whether the symbols after s depend on the text that s matches.
func (s *symbol) textMatters() bool { return s.next != nil || s.late != nil }

const (
	unknown int32 = iota
	no
	yes
)

// An alternative is one sequence of symbols of a rule.
type alternative struct {
	seq     uint64
	symbols []*symbol
}

var sequence atomic.Uint64

func newAlternative(symbols []*symbol) *alternative {
	return &alternative{seq: sequence.Add(1), symbols: symbols}
}
