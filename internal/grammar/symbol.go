package grammar

import (
	"sync"
	"sync/atomic"

	"github.com/realizar/realizar/internal/rx"
)

// A Symbol is a terminal or a rule. Symbols of several builders may stand in one grammar.
type Symbol struct{ s *symbol }

// IsZero reports whether s is no symbol at all.
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
	nullable atomic.Int32 // of a rule: an answer
	seq      uint64       // no two are the same
	name     string       // of a rule; the text of a special token
	builder  *Builder

	// A terminal's.
	id    int32 // among the lexemes of the builder's automaton
	expr  rx.Expr
	empty bool                     // it has the string ""
	next  func(text []byte) Symbol // of a Then
	fits  func(text []byte) bool   // of a Bind; nil: all texts do
	late  *symbol                  // of a Bind
	match tokenMatch

	// A rule's.
	alternatives atomic.Pointer[[]*alternative]
	expand       func() [][]Symbol
	rest         func(text []byte) Symbol // of what hangs on the text of a Bind: no rule before that is known
	once         sync.Mutex
}

// textMatters reports whether what follows s depends on the text that s matches.
func (s *symbol) textMatters() bool { return s.next != nil || s.late != nil }

const (
	unknown int32 = iota
	no
	yes
)

// alternative is one sequence of a rule.
type alternative struct {
	seq     uint64
	symbols []*symbol
}

var sequence atomic.Uint64

func newAlternative(symbols []*symbol) *alternative {
	return &alternative{seq: sequence.Add(1), symbols: symbols}
}
