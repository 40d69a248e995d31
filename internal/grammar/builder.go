package grammar

import (
	"fmt"
	"math"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// A Builder makes symbols. Those of one builder share a space and an automaton, which live as
// long as one of the symbols does. Many goroutines may use it at once.
type Builder struct {
	seq       uint64
	limits    Limits
	space     *rx.Space
	automaton *rx.Automaton
	root      *Builder // whose lexemes its own are; itself, but of a fork

	mu      sync.Mutex
	lexemes map[rx.Expr]*symbol
	size    int
	err     error
}

// NewBuilder makes one. A grammar's limits are those of the builder that makes it.
func NewBuilder(l Limits) *Builder {
	l = l.withDefaults()
	space := rx.NewSpace(l.Expressions)
	b := &Builder{seq: sequence.Add(1), limits: l, space: space, automaton: rx.NewAutomaton(space, l.Derivatives), lexemes: map[rx.Expr]*symbol{}}
	b.root = b
	return b
}

// Fork is a builder for symbols that are made while texts are read. They share b's space and
// automaton, and with these their masks. They are collected with the states of the text: b
// does not count them.
func (b *Builder) Fork() *Builder {
	return &Builder{seq: sequence.Add(1), limits: b.limits, space: b.space, automaton: b.automaton, root: b.root, lexemes: map[rx.Expr]*symbol{}}
}

// Space is where the expressions of b's lexemes are made.
func (b *Builder) Space() *rx.Space { return b.space }

// What a rule, an alternative or a symbol takes, and an expression, about.
const (
	ruleBytes       = 256 // with what they are compiled from
	expressionBytes = 128
)

// bytes is what the symbols of b take, about.
func (b *Builder) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ruleBytes*int64(b.size) + expressionBytes*int64(b.space.Len())
}

// Lexeme is a terminal: one of the strings of e, which must have one and may have "".
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

// Bind is a terminal, one of the strings of e of which fits says that they may stand, and a late
// symbol, which stands for what rest makes of the bytes that the terminal is. It belongs after
// the terminal, in the same alternative. rest is asked where a text comes to the late symbol,
// and no sooner: what stands between must not hang on it. So masks are as fast as those of
// other lexemes where fits is nil, and nearly so with it; this is what to use for the names of
// an object's members, each of which is to be there once. e has not "". Both functions must
// give the same for the same bytes and may be called at any time. Any beginning of a string of
// e must be one of a string that fits. rest should use a Builder of its own, as with Then.
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

// bound is what late symbol s is after a text.
func (s *symbol) bound(text string) *symbol {
	return &symbol{kind: ruleKind, seq: sequence.Add(1), builder: s.builder, expand: func() [][]Symbol {
		if after := s.rest([]byte(text)); !after.IsZero() {
			return [][]Symbol{{after}}
		}
		return nil
	}}
}

// Then is a terminal, one of the strings of e, and after it what next makes of the bytes that
// it is. next must give the same for the same bytes and may be called at any time; nothing
// may follow its zero Symbol. It should make its symbols with a Builder of its own, which is
// collected with the states of the text; they are not checked as those of a [Grammar] are.
func (b *Builder) Then(e rx.Expr, next func(text []byte) Symbol) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.space.Nullable(e) {
		// "" is read before there is a set to read it from: so it is a choice of its own.
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

// Special is a terminal: the special token with this text, or the bytes of the text where a
// vocabulary has no such token. [State.Bytes] takes the bytes.
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

// Rule is a rule that is to be defined. The name stands in errors.
func (b *Builder) Rule(name string) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Symbol{b.rule(name)}
}

func (b *Builder) rule(name string) *symbol {
	b.spend(1)
	return &symbol{kind: ruleKind, seq: sequence.Add(1), name: name, builder: b}
}

// Define says what a rule is: one of the alternatives, each a sequence. An empty sequence is
// "". A rule is defined once.
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

// Lazy is a rule that is defined when it is first met in a text. expand must always give the
// same, and rules that have an end: they are not checked. It may be called at any time, by
// any goroutine.
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

// errLate is returned where a late symbol is met before its text is known.
var errLate = fmt.Errorf("grammar: a late symbol does not stand after its terminal: %w", ErrGrammar)

// define is the alternatives of a rule, expanded where it is lazy.
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

// String is what errors call s.
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
