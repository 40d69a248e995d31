package grammar

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/realizar/realizar/internal/rx"
)

// An item is how far one alternative has come, and where it returns to.
type item struct {
	of  *alternative
	dot int
	to  origin
}

// next is the symbol that it waits for.
func (i *item) next() *symbol { return i.of.symbols[i.dot] }

// An origin is where a rule returns to: the items of set that wait for rule. Without a set it
// is the end of the text.
type origin struct {
	set  *set
	rule *symbol
}

// A set is what the rules have come to at one place in a text, where a lexeme begins.
type set struct {
	seq       uint64
	kernel    []item // that came here; the others are predicted from them
	accepts   bool   // the text may end here
	waits     []waiting
	lexemes   []waiting // by builder, then by id
	tokens    []waiting // those that are specials or tokens
	then      bool      // one of lexemes has text that matters
	size      int
	starts    atomic.Pointer[[]begun]
	vocabular atomic.Pointer[vocabularyStarts]
}

// begun is the state before lexemes of one builder.
type begun struct {
	lex     *rx.State
	builder *Builder
}

type waiting struct {
	on    *symbol
	items []item
}

// vocabularyStarts is the states that lexemes begin in where a vocabulary has special tokens.
type vocabularyStarts struct {
	vocabulary *Vocabulary
	states     []begun
}

// returns is the items of s that wait for rule.
func (s *set) returns(rule *symbol) []item {
	for i := range s.waits {
		if s.waits[i].on == rule {
			return s.waits[i].items
		}
	}
	return nil
}

// maker makes a set. It is used once and over again.
type maker struct {
	limit int

	// The items that came, closed over what is complete.
	queue   []item
	seen    map[item]struct{}
	kernel  []item
	accepts bool

	// What they predict.
	rules   []prediction
	ruleAt  map[*symbol]int
	waiting []predicted
}

// prediction is a rule that begins in the set.
type prediction struct {
	rule *symbol
	uses int       // items that wait for it
	last predicted // the last of them
	to   origin
	ends bool // to is known
}

// predicted is an item whose origin is that of a rule of the set, or its own.
type predicted struct {
	item
	rule int // index of prediction; -1: its own
}

func newMaker(limit int) *maker {
	return &maker{limit: limit, seen: map[item]struct{}{}, ruleAt: map[*symbol]int{}}
}

func (m *maker) reset() {
	m.queue, m.kernel, m.accepts = m.queue[:0], m.kernel[:0], false
	m.rules, m.waiting = m.rules[:0], m.waiting[:0]
	clear(m.seen)
	clear(m.ruleAt)
}

func (m *maker) overflow() error {
	return fmt.Errorf("grammar: more than %d items at one place of the text: %w", m.limit, ErrLimit)
}

// push adds an item that came.
func (m *maker) push(i item) {
	if _, ok := m.seen[i]; !ok {
		m.seen[i] = struct{}{}
		m.queue = append(m.queue, i)
	}
}

// close takes the items that came to all that follow from them: what they complete, and what
// comes after symbols that may be "".
func (m *maker) close() error {
	for n := 0; n < len(m.queue); n++ {
		if len(m.queue) > m.limit {
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

// set makes the set of the kernel.
func (m *maker) set() (*set, error) {
	s := &set{seq: sequence.Add(1), kernel: slices.Clone(m.kernel), accepts: m.accepts}
	for _, i := range s.kernel {
		m.waiting = append(m.waiting, predicted{i, -1})
	}
	if err := m.predict(); err != nil {
		return nil, err
	}
	for i := range m.rules {
		m.settle(s, i)
	}
	m.fill(s)
	s.size = len(s.kernel) + len(m.waiting)
	return s, nil
}

// predict adds to m.waiting the items that rules begin with.
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
				m.rules = append(m.rules, prediction{rule: next})
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
			m.rules[at].uses++
			m.rules[at].last = i
		}
		// What came has its successors in the kernel.
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

// settle finds where rule n of s returns to. Where one item alone waits for it, and ends with
// it, that is where this one returns. A chain of such items comes from the kernel, so it has
// an end.
func (m *maker) settle(s *set, n int) {
	var chain []int
	for !m.rules[n].ends {
		r := &m.rules[n]
		if r.uses == 1 && r.last.dot+1 == len(r.last.of.symbols) {
			if r.last.rule >= 0 {
				chain = append(chain, n)
				n = r.last.rule
				continue
			}
			r.to = r.last.to
		} else {
			r.to = origin{s, r.rule}
		}
		r.ends = true
	}
	for _, c := range chain {
		m.rules[c].to, m.rules[c].ends = m.rules[n].to, true
	}
}

// fill gives s the items by what they wait for.
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
				continue // nothing returns here
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
		s.then = s.then || on.next != nil
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

// begin is the states of the lexemes that s waits for, one for each builder. v is nil or has
// special tokens that are not read as text.
func (s *set) begin(v *Vocabulary) ([]begun, error) {
	known := false
	if v != nil {
		for _, w := range s.tokens {
			if w.on.kind == specialKind {
				_, ok := v.special[w.on.name]
				known = known || ok
			}
		}
	}
	if !known {
		if have := s.starts.Load(); have != nil {
			return *have, nil
		}
		states, err := s.beginWith(nil)
		if err == nil {
			s.starts.Store(&states)
		}
		return states, err
	}
	if have := s.vocabular.Load(); have != nil && have.vocabulary == v {
		return have.states, nil
	}
	states, err := s.beginWith(v)
	if err == nil {
		s.vocabular.Store(&vocabularyStarts{v, states})
	}
	return states, err
}

func (s *set) beginWith(v *Vocabulary) ([]begun, error) {
	states := []begun{}
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

// accepted is the part of s.lexemes that is of the builder of a state that it has begun.
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
