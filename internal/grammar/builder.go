package grammar

import (
	"fmt"
	"math"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// A Builder makes symbols. All symbols of a builder share one expression space and one automaton,
// which stay alive as long as any of the symbols. A Builder is safe for concurrent use.
type Builder struct {
	seq       uint64
	limits    Limits
	space     *rx.Space
	automaton *rx.Automaton
	root      *Builder // owns the lexemes; the builder itself unless it is a fork

	mu      sync.Mutex
	lexemes map[rx.Expr]*symbol
	size    int
	err     error
}

// NewBuilder returns an empty builder. Grammars made by it are bound by l.
func NewBuilder(l Limits) *Builder {
	l = l.withDefaults()
	space := rx.NewSpace(l.Expressions)
	b := &Builder{seq: sequence.Add(1), limits: l, space: space, automaton: rx.NewAutomaton(space, l.Derivatives), lexemes: map[rx.Expr]*symbol{}}
	b.root = b
	return b
}

// Fork returns a builder for symbols that are made while a text is read. Its symbols share b's
// space and automaton, and so their masks. They are garbage collected with the states of the text
// and do not count against b's limits.
func (b *Builder) Fork() *Builder {
	return &Builder{seq: sequence.Add(1), limits: b.limits, space: b.space, automaton: b.automaton, root: b.root, lexemes: map[rx.Expr]*symbol{}}
}

// Space returns the space in which the expressions of b's lexemes are made.
func (b *Builder) Space() *rx.Space { return b.space }

// Approximate sizes, in bytes, of a rule, an alternative or a symbol, and of an expression.
const (
	ruleBytes       = 256 // including its source
	expressionBytes = 128
)

// bytes returns the approximate size of b's symbols and expressions in bytes.
func (b *Builder) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ruleBytes*int64(b.size) + expressionBytes*int64(b.space.Len())
}

// Lexeme returns a terminal that matches any string of e. e must not be empty; it may contain "".
func (b *Builder) Lexeme(e rx.Expr) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.lexemes[e]
	if s == nil {
		s = b.terminal(&symbol{kind: lexemeKind, id: lexemeID(e), expr: e, empty: b.space.Nullable(e)})
		b.lexemes[e] = s
	}
	return Symbol{s}
}

// Bind returns a terminal and a late symbol. The terminal matches the strings of e for which fits
// returns true; a nil fits allows all. The late symbol stands for the symbol that rest returns for
// the matched text, and must come after the terminal in the same alternative. rest is called when a
// text reaches the late symbol, and no sooner: the symbols between the two must not depend on it.
// So masks are as fast as those of other lexemes if fits is nil, and nearly as fast otherwise. Use
// Bind for the names of an object's members, each of which must occur once.
//
// e must not contain "". fits and rest must return the same result for the same bytes, and may be
// called at any time. Every prefix of a string of e must be a prefix of a string that fits. rest
// should use a Builder of its own, as with Then.
func (b *Builder) Bind(e rx.Expr, fits func(text []byte) bool, rest func(text []byte) Symbol) (terminal, late Symbol) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.space.Nullable(e) {
		b.fault(fmt.Errorf("grammar: a bound lexeme has the string \"\": %w", ErrGrammar))
	}
	after := b.rule("")
	after.rest = rest
	return Symbol{b.terminal(&symbol{kind: lexemeKind, id: lexemeID(e), expr: e, fits: fits, late: after})}, Symbol{after}
}

// bound returns the symbol for which the late symbol s stands after text.
func (s *symbol) bound(text string) *symbol {
	return &symbol{kind: ruleKind, seq: sequence.Add(1), builder: s.builder, expand: func() [][]Symbol {
		if after := s.rest([]byte(text)); !after.IsZero() {
			return [][]Symbol{{after}}
		}
		return nil
	}}
}

// Then returns a terminal that matches any string of e, followed by the symbol that next returns
// for the matched text. If next returns the zero Symbol, no text can follow. next must return the
// same result for the same bytes, and may be called at any time. It should make its symbols with a
// Builder of its own, which is garbage collected with the states of the text. Unlike the rules of a
// [Grammar], these symbols are not checked.
func (b *Builder) Then(e rx.Expr, next func(text []byte) Symbol) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.space.Nullable(e) {
		// A set never waits for "": make the empty match an alternative of its own.
		rule := b.rule("")
		long := b.terminal(&symbol{kind: lexemeKind, next: next})
		long.expr = b.space.And(e, b.space.Not(rx.Empty))
		long.id = lexemeID(long.expr)
		rule.expand = func() [][]Symbol {
			var all [][]Symbol
			if after := next(nil); !after.IsZero() {
				all = append(all, []Symbol{after})
			}
			if !b.space.IsEmpty(long.expr) {
				all = append(all, []Symbol{{long}})
			}
			return all
		}
		return Symbol{rule}
	}
	return Symbol{b.terminal(&symbol{kind: lexemeKind, id: lexemeID(e), expr: e, next: next})}
}

func lexemeID(e rx.Expr) int32 { return int32(e) << 1 }

// Special returns a terminal that matches the special token with this text, or the bytes of the
// text if a vocabulary has no such token. [State.Bytes] matches the bytes.
func (b *Builder) Special(text string) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.space.Literal(text)
	return Symbol{b.terminal(&symbol{kind: specialKind, name: text, id: lexemeID(e) | 1, expr: e, empty: text == ""})}
}

func (b *Builder) terminal(s *symbol) *symbol {
	s.seq, s.builder = sequence.Add(1), b.root
	b.spend(1)
	return s
}

func (b *Builder) spend(n int) {
	if b.size += n; b.size > b.limits.Rules || b.space.Len() > math.MaxInt32/2 {
		b.err = fmt.Errorf("grammar: more than %d rules, alternatives and symbols: %w", b.limits.Rules, ErrLimit)
	}
}

// Rule returns a rule that is not defined yet. Errors mention the name.
func (b *Builder) Rule(name string) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Symbol{b.rule(name)}
}

func (b *Builder) rule(name string) *symbol {
	b.spend(1)
	return &symbol{kind: ruleKind, seq: sequence.Add(1), name: name, builder: b}
}

// Define sets the alternatives of a rule. Each is a sequence of symbols; an empty sequence matches
// "". A rule must be defined exactly once.
func (b *Builder) Define(rule Symbol, alternatives ...[]Symbol) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rule.s == nil || rule.s.kind != ruleKind || rule.s.expand != nil || rule.s.rest != nil || rule.s.alternatives.Load() != nil {
		b.fault(fmt.Errorf("grammar: rule %s is defined twice or is none: %w", rule, ErrGrammar))
		return
	}
	made, err := b.sequences(alternatives)
	if err != nil {
		b.fault(fmt.Errorf("grammar: rule %s: %w", rule, err))
		return
	}
	rule.s.alternatives.Store(&made)
}

func (b *Builder) fault(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Builder) sequences(alternatives [][]Symbol) ([]*alternative, error) {
	made := make([]*alternative, 0, len(alternatives))
	for _, symbols := range alternatives {
		b.spend(1 + len(symbols))
		own := make([]*symbol, len(symbols))
		for i, s := range symbols {
			if s.s == nil {
				return nil, fmt.Errorf("a zero symbol: %w", ErrGrammar)
			}
			own[i] = s.s
		}
		made = append(made, newAlternative(own))
	}
	return made, nil
}

// Lazy returns a rule that is defined when a text first reaches it. expand must always return the
// same alternatives, and they must match a finite text: they are not checked. Any goroutine may
// call expand at any time.
func (b *Builder) Lazy(name string, expand func() [][]Symbol) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.rule(name)
	s.expand = expand
	return Symbol{s}
}

func (b *Builder) fail() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// errLate is returned if a late symbol is reached before its text is known.
var errLate = fmt.Errorf("grammar: a late symbol does not stand after its terminal: %w", ErrGrammar)

// define returns the alternatives of a rule. It expands a lazy rule.
func (s *symbol) define() ([]*alternative, error) {
	if have := s.alternatives.Load(); have != nil {
		return *have, nil
	}
	if s.rest != nil {
		return nil, errLate
	}
	if s.expand == nil {
		return nil, fmt.Errorf("grammar: rule %s is not defined: %w", s, ErrGrammar)
	}
	s.once.Lock()
	defer s.once.Unlock()
	if have := s.alternatives.Load(); have != nil {
		return *have, nil
	}
	symbols := s.expand()
	s.builder.mu.Lock()
	defer s.builder.mu.Unlock()
	made, err := s.builder.sequences(symbols)
	if err != nil {
		return nil, fmt.Errorf("grammar: rule %s: %w", s, err)
	}
	if s.builder.err != nil {
		return nil, s.builder.err
	}
	if s.builder.space.Err() != nil {
		return nil, fmt.Errorf("grammar: rule %s: more than %d expressions: %w", s, s.builder.limits.Expressions, ErrLimit)
	}
	s.alternatives.Store(&made)
	return made, nil
}

// String returns the name of s for error messages.
func (s Symbol) String() string {
	if s.s == nil {
		return "(none)"
	}
	return s.s.String()
}

func (s *symbol) String() string {
	switch {
	case s.kind == ruleKind && s.name == "":
		return "(no name)"
	case s.kind == ruleKind || s.kind == specialKind:
		return fmt.Sprintf("%q", s.name)
	case s.kind == tokenKind:
		return "a token"
	}
	return fmt.Sprintf("lexeme %d", s.expr)
}
