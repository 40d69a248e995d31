package grammar

import (
	"fmt"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// A Grammar is a language. It is safe for concurrent use.
type Grammar struct {
	limits  Limits
	builder *Builder
	memo    *memo
	start   State
	makers  sync.Pool
}

// Grammar returns the language of start. The error names the rule that is not defined or has no
// end, or the limit that is exceeded.
func (b *Builder) Grammar(start Symbol) (*Grammar, error) {
	if start.IsZero() {
		return nil, fmt.Errorf("grammar: it starts with no symbol: %w", ErrGrammar)
	}
	if err := b.fail(); err != nil {
		return nil, err
	}
	if err := check(start.s); err != nil {
		return nil, err
	}
	if err := b.fail(); err != nil {
		return nil, err
	}
	g := &Grammar{limits: b.limits, builder: b.root, memo: newMemo(b.limits.Sets)}
	g.makers.New = func() any { return &scratch{maker: newMaker(g.limits.Items)} }
	sc := g.begin()
	defer g.end(sc)
	sc.maker.reset()
	sc.maker.push(item{of: newAlternative([]*symbol{start.s})})
	if err := sc.maker.close(); err != nil {
		return nil, err
	}
	first, err := g.memo.intern(sc.maker, sc.key)
	if err != nil {
		return nil, err
	}
	g.start = State{&configuration{grammar: g, threads: []thread{{set: first}}}}
	return g, nil
}

// Start returns the state before any text.
func (g *Grammar) Start() State { return g.start }

// Bytes returns the approximate size of g in bytes: its symbols, and what texts and masks have
// added. Symbols of other builders count there.
func (g *Grammar) Bytes() int64 {
	return g.builder.bytes() + g.memo.kept() + g.builder.automaton.Kept()
}

// An end is the lexemes of a set, in the automaton of one builder, that end at a byte.
type end struct {
	set     *set
	accept  *rx.Accept
	builder *Builder
	text    *text
	any     bool // text is not known, and the next set must not depend on it
}

// advance returns the set after lexemes that end together, or nil if no symbol can follow.
func (g *Grammar) advance(sc *scratch, ends []end) (*set, error) {
	forget(ends)
	memo, keep := stepOf(ends)
	if keep {
		if to := g.memo.find(memo); to != nil {
			return to, nil
		}
	}
	m := sc.maker
	m.reset()
	for _, e := range ends {
		for _, id := range e.accept.IDs {
			for _, w := range e.set.accepted(id, e.builder) {
				if err := g.push(m, w, e); err != nil {
					return nil, err
				}
			}
		}
	}
	to, err := g.close(sc)
	if err == nil {
		err = sc.spend(m.pushes + len(m.waiting))
	}
	if err == nil && keep && to != nil {
		g.memo.keep(memo, to)
	}
	return to, err
}

// push adds the successors of the items that wait for a lexeme which ends. It returns [errLate]
// if they depend on a text that is not known.
func (g *Grammar) push(m *maker, w waiting, e end) error {
	var text string
	if w.on.textMatters() && !e.any {
		if text = e.text.String(); w.on.fits != nil && !w.on.fits([]byte(text)) {
			return nil
		}
	}
	var next Symbol
	if w.on.next != nil {
		if e.any {
			return errLate
		}
		if next = w.on.next([]byte(text)); next.IsZero() {
			return nil
		}
	}
	for _, i := range w.items {
		switch {
		case w.on.next != nil:
			m.push(g.memo.continued(i, next.s))
		case w.on.late != nil && !e.any:
			m.push(g.memo.bound(i, w.on.late, text))
		default:
			i.dot++
			m.push(i)
		}
	}
	return nil
}

// forget drops the texts that no symbol after ends depends on.
func forget(ends []end) {
	for n := range ends {
		if e := &ends[n]; (e.text != nil || e.any) && !e.set.asks(e.accept, e.builder) {
			e.text, e.any = nil, false
		}
	}
}

// close returns the set of the items in the maker, or nil if no text can follow.
func (g *Grammar) close(sc *scratch) (*set, error) {
	if err := sc.maker.close(); err != nil {
		return nil, err
	}
	if len(sc.maker.kernel) == 0 && !sc.maker.accepts {
		return nil, nil
	}
	return g.memo.intern(sc.maker, sc.key)
}
