package grammar

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"weak"

	"github.com/realizar/realizar/internal/rx"
)

// An item is the progress in one alternative, with the origin to which it returns.
type item struct {
	of  *alternative
	dot int
	to  origin
}

// next returns the symbol that i waits for.
func (i *item) next() *symbol { return i.of.symbols[i.dot] }

// An origin is the place to which a rule returns: the items of set that wait for rule, or the end
// of the text if set is nil.
type origin struct {
	set  *set
	rule *symbol
}

// A set is the progress in all rules at a position of a text where a lexeme begins.
type set struct {
	seq       uint64
	kernel    []item // items that advanced from earlier sets; all others are predicted
	accepts   bool   // the text may end here
	waits     []waiting
	lexemes   []waiting // by builder, then by id
	tokens    []waiting // for special tokens, or tokens by number
	then      bool      // the text of a lexeme matters
	checks    bool      // a lexeme has a condition on its text
	nexts     bool      // the symbol after a lexeme depends on its text
	size      int
	starts    atomic.Pointer[starts] // if special tokens are read as text
	vocabular atomic.Pointer[starts] // for the last vocabulary that has special tokens in tokens
}

// A begun is the first state of the lexemes of one builder.
type begun struct {
	lex     *rx.State
	builder *Builder
}

type waiting struct {
	on    *symbol
	items []item
}

// starts caches the first states of lexemes for as long as their automata keep them.
type starts struct {
	vocabulary *Vocabulary
	states     []weak.Pointer[rx.State]
	builders   []*Builder
}

// get appends the states to to. It returns false if one of them was garbage collected.
func (s *starts) get(to []begun) ([]begun, bool) {
	for i, p := range s.states {
		st := p.Value()
		if st == nil {
			return to, false
		}
		to = append(to, begun{st, s.builders[i]})
	}
	return to, true
}

// returns returns the items of s that wait for rule.
func (s *set) returns(rule *symbol) []item {
	for i := range s.waits {
		if s.waits[i].on == rule {
			return s.waits[i].items
		}
	}
	return nil
}

// A maker makes sets. It is reused.
type maker struct {
	limit int

	// The pushed items and all that follow from completed rules.
	queue   []item
	seen    map[item]struct{}
	kernel  []item
	accepts bool
	pushes  int

	// The items and rules that the kernel predicts.
	rules   []prediction
	ruleAt  map[*symbol]int
	waiting []predicted
	uses    []use
}

// A prediction is a rule that begins in the set.
type prediction struct {
	rule  *symbol
	uses  int // the last of its uses; -1: none
	to    origin
	known bool // whether to is known
	own   bool // whether to is the rule in this set
}

// A use is an item that waits for a rule, in a linked list.
type use struct {
	item predicted
	next int // in maker.uses; -1: none
}

// A predicted is an item whose origin is its own or that of a rule in the set.
type predicted struct {
	item
	rule int // index of prediction; -1: its own
}

func newMaker(limit int) *maker {
	return &maker{limit: limit, seen: map[item]struct{}{}, ruleAt: map[*symbol]int{}}
}

func (m *maker) reset() {
	m.queue, m.kernel, m.accepts, m.pushes = m.queue[:0], m.kernel[:0], false, 0
	m.rules, m.waiting, m.uses = m.rules[:0], m.waiting[:0], m.uses[:0]
	clear(m.seen)
	clear(m.ruleAt)
}

func (m *maker) overflow() error {
	return fmt.Errorf("grammar: more than %d items at one place of the text: %w", m.limit, ErrLimit)
}

// push adds an item to the queue.
func (m *maker) push(i item) {
	m.pushes++
	if _, ok := m.seen[i]; !ok {
		m.seen[i] = struct{}{}
		m.queue = append(m.queue, i)
	}
}

// close adds the items that follow from those in the queue: by completed rules, and by symbols that
// may be "".
func (m *maker) close() error {
	for n := 0; n < len(m.queue); n++ {
		if len(m.queue) > m.limit || m.pushes > 16*m.limit {
			return m.overflow()
		}
		i := m.queue[n]
		if i.dot == len(i.of.symbols) {
			if i.to.set == nil {
				m.accepts = true
				continue
			}
			for _, w := range i.to.set.returns(i.to.rule) {
				w.dot++
				m.push(w)
			}
			continue
		}
		m.kernel = append(m.kernel, i)
		skip, err := i.next().isNullable()
		if err != nil {
			return err
		}
		if skip {
			i.dot++
			m.push(i)
		}
	}
	slices.SortFunc(m.kernel, compareItems)
	return nil
}

func compareItems(a, b item) int {
	if c := cmp.Or(cmp.Compare(a.of.seq, b.of.seq), cmp.Compare(a.dot, b.dot)); c != 0 {
		return c
	}
	return compareOrigins(a.to, b.to)
}

func compareOrigins(a, b origin) int {
	if a.set != b.set {
		switch {
		case a.set == nil:
			return -1
		case b.set == nil:
			return 1
		}
		return cmp.Compare(a.set.seq, b.set.seq)
	}
	if a.rule != b.rule {
		return cmp.Compare(a.rule.seq, b.rule.seq)
	}
	return 0
}

// set returns the set of the kernel.
func (m *maker) set() (*set, error) {
	s := &set{seq: sequence.Add(1), kernel: slices.Clone(m.kernel), accepts: m.accepts}
	for _, i := range s.kernel {
		m.waiting = append(m.waiting, predicted{i, -1})
	}
	if err := m.predict(); err != nil {
		return nil, err
	}
	m.settle(s)
	m.fill(s)
	s.size = len(s.kernel) + len(m.waiting)
	return s, nil
}

// predict adds the first items of the rules that begin in the set to m.waiting.
func (m *maker) predict() error {
	for n := 0; n < len(m.waiting); n++ {
		if len(m.waiting) > m.limit {
			return m.overflow()
		}
		i := m.waiting[n]
		next := i.next()
		if next.kind == ruleKind {
			at, ok := m.ruleAt[next]
			if !ok {
				at = len(m.rules)
				m.ruleAt[next] = at
				m.rules = append(m.rules, prediction{rule: next, uses: -1})
				alternatives, err := next.define()
				if err != nil {
					return err
				}
				for _, a := range alternatives {
					if len(a.symbols) > 0 {
						m.waiting = append(m.waiting, predicted{item{of: a}, at})
					}
				}
			}
			m.uses = append(m.uses, use{i, m.rules[at].uses})
			m.rules[at].uses = len(m.uses) - 1
		}
		// The successors of kernel items are in the kernel.
		if i.rule < 0 || i.dot+1 == len(i.of.symbols) {
			continue
		}
		skip, err := next.isNullable()
		if err != nil {
			return err
		}
		if skip {
			i.dot++
			m.waiting = append(m.waiting, i)
		}
	}
	return nil
}

// settle computes the origins to which the rules of s return. If all items that wait for a rule end
// with it and return to the same origin, the rule returns there directly. This keeps right
// recursion constant in depth. All other rules return to s.
func (m *maker) settle(s *set) {
	const rounds = 20 // after that, the remaining rules return to s, which is correct for any rule
	for round, changed := 0, true; changed; round++ {
		changed = false
		for n := range m.rules {
			r := &m.rules[n]
			if r.own {
				continue
			}
			to, agree := m.agreed(r)
			switch {
			case !agree || round == rounds:
				r.to, r.known, r.own, changed = origin{s, r.rule}, true, true, true
			case to != nil && (!r.known || r.to != *to):
				r.to, r.known, changed = *to, true, true
			}
		}
	}
}

// agreed returns the one origin to which all items that wait for r return, or nil if it is not
// known yet. It returns false if there are several, or if an item does not end with r.
func (m *maker) agreed(r *prediction) (to *origin, ok bool) {
	for n := r.uses; n >= 0; n = m.uses[n].next {
		i := &m.uses[n].item
		if i.dot+1 != len(i.of.symbols) {
			return nil, false
		}
		at := &i.to
		if i.rule >= 0 {
			if !m.rules[i.rule].known {
				continue
			}
			at = &m.rules[i.rule].to
		}
		if to != nil && *to != *at {
			return nil, false
		}
		to = at
	}
	return to, true
}

// fill groups the items of s by the symbols that they wait for.
func (m *maker) fill(s *set) {
	at := map[*symbol]int{}
	for _, p := range m.waiting {
		on := p.next()
		i := p.item
		if p.rule >= 0 {
			i.to = m.rules[p.rule].to
		}
		list := &s.lexemes
		switch on.kind {
		case ruleKind:
			if to := m.rules[m.ruleAt[on]].to; to.set != s || to.rule != on {
				continue // the rule returns to another origin
			}
			list = &s.waits
		case tokenKind:
			list = &s.tokens
		}
		n, ok := at[on]
		if !ok {
			n = len(*list)
			at[on] = n
			*list = append(*list, waiting{on: on})
		}
		(*list)[n].items = append((*list)[n].items, i)
		s.then = s.then || on.textMatters()
		s.checks = s.checks || on.fits != nil
		s.nexts = s.nexts || on.next != nil
	}
	slices.SortFunc(s.lexemes, func(a, b waiting) int {
		if a.on.builder != b.on.builder {
			return cmp.Compare(a.on.builder.seq, b.on.builder.seq)
		}
		return cmp.Or(cmp.Compare(a.on.id, b.on.id), cmp.Compare(a.on.seq, b.on.seq))
	})
	for _, w := range s.lexemes {
		if w.on.kind == specialKind {
			s.tokens = append(s.tokens, w)
		}
	}
}

// begin returns the first states of the lexemes that s waits for, one for each builder, in buf. The
// special tokens of v are not read as text; v may be nil.
func (s *set) begin(v *Vocabulary, buf []begun) ([]begun, error) {
	at := &s.starts
	if v != nil && v.hasSpecial(s) {
		at = &s.vocabular
	} else {
		v = nil
	}
	if have := at.Load(); have != nil && have.vocabulary == v {
		if states, ok := have.get(buf[:0]); ok {
			return states, nil
		}
	}
	states, err := s.beginWith(v, buf[:0])
	if err != nil {
		return nil, err
	}
	kept := &starts{vocabulary: v}
	for _, st := range states {
		kept.states = append(kept.states, weak.Make(st.lex))
		kept.builders = append(kept.builders, st.builder)
	}
	at.Store(kept)
	return states, nil
}

// hasSpecial reports whether s waits for a special token that v has.
func (v *Vocabulary) hasSpecial(s *set) bool {
	for _, w := range s.tokens {
		if w.on.kind == specialKind {
			if _, ok := v.special[w.on.name]; ok {
				return true
			}
		}
	}
	return false
}

func (s *set) beginWith(v *Vocabulary, states []begun) ([]begun, error) {
	var lexemes []rx.Lexeme
	for n, w := range s.lexemes {
		special := false
		if v != nil && w.on.kind == specialKind {
			_, special = v.special[w.on.name]
		}
		if id := w.on.id; !special && (len(lexemes) == 0 || lexemes[len(lexemes)-1].ID != id) {
			lexemes = append(lexemes, rx.Lexeme{ID: id, Set: w.on.expr})
		}
		if n+1 < len(s.lexemes) && s.lexemes[n+1].on.builder == w.on.builder {
			continue
		}
		st, err := w.on.builder.automaton.Start(lexemes)
		if err != nil {
			return nil, fmt.Errorf("grammar: %w: %w", ErrLimit, err)
		}
		if st != nil {
			states = append(states, begun{st, w.on.builder})
		}
		lexemes = lexemes[:0]
	}
	return states, nil
}

// accepted returns the part of s.lexemes with this id and builder.
func (s *set) accepted(id int32, b *Builder) []waiting {
	from, _ := slices.BinarySearchFunc(s.lexemes, id, func(w waiting, id int32) int {
		if w.on.builder != b {
			return cmp.Compare(w.on.builder.seq, b.seq)
		}
		return cmp.Compare(w.on.id, id)
	})
	to := from
	for to < len(s.lexemes) && s.lexemes[to].on.builder == b && s.lexemes[to].on.id == id {
		to++
	}
	return s.lexemes[from:to]
}

// asks reports whether the text of one of the lexemes matters.
func (s *set) asks(accept *rx.Accept, b *Builder) bool {
	for _, id := range accept.IDs {
		for _, w := range s.accepted(id, b) {
			if w.on.textMatters() {
				return true
			}
		}
	}
	return false
}
