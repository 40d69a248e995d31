package grammar

import (
	"errors"
	"fmt"
	"weak"

	"github.com/realizar/realizar/internal/rx"
)

// Mask sets words to the mask of the tokens that may come next: bit id%32 of words[id/32] is set if
// and only if [State.Token] accepts token id. words must have at least [Vocabulary.Words] elements.
// The error is [ErrLimit].
func (s State) Mask(v *Vocabulary, words []uint32) error {
	if len(words) < v.words {
		return fmt.Errorf("grammar: a mask of %d words for a vocabulary that takes %d", len(words), v.words)
	}
	clear(words)
	g := s.c.grammar
	sc := g.begin()
	defer g.end(sc)
	w := &sc.walker
	w.g, w.v, w.sc, w.found = g, v, sc, w.found[:0]
	defer func() { clear(w.alive); w.alive = w.alive[:0] }()
	if sc.vocabulary != v {
		sc.vocabulary, sc.shaper = v, shaper{}
	}
	for _, t := range s.c.threads {
		if err := w.mask(t, words); err != nil {
			return err
		}
	}
	if s.Ends() {
		for _, id := range v.end {
			words[id/32] |= 1 << (id % 32)
		}
	}
	return nil
}

// mask sets the bits of the tokens that fit after a thread.
func (w *walker) mask(t thread, words []uint32) error {
	if t.lex == nil && len(t.set.tokens) > 0 {
		w.v.maskTokens(t.set, words)
	}
	if t.lex != nil {
		return w.maskLexeme(t, words)
	}
	states, err := t.set.begin(w.v, nil) // not sc.begin, which masks of lexemes call as well
	if err != nil {
		return err
	}
	for _, st := range states {
		t.lex, t.builder = st.lex, st.builder
		if err := w.maskLexeme(t, words); err != nil {
			return err
		}
	}
	return nil
}

// maskTokens sets the bits of the tokens that s waits for as terminals.
func (v *Vocabulary) maskTokens(s *set, words []uint32) {
	for _, t := range s.tokens {
		switch m := &t.on.match; {
		case t.on.kind == specialKind:
			if id, ok := v.special[t.on.name]; ok {
				words[id/32] |= 1 << (id % 32)
			}
		case m.special:
			for id := range v.ids {
				if m.has(v, id) {
					words[id/32] |= 1 << (id % 32)
				}
			}
		case m.not:
			for id := range v.size {
				if m.has(v, id) {
					words[id/32] |= 1 << (id % 32)
				}
			}
		default:
			for _, id := range m.ids {
				if v.knows(id) {
					words[id/32] |= 1 << (id % 32)
				}
			}
		}
	}
}

// A maskKey identifies a mask.
type maskKey struct {
	set        *set
	lex        weak.Pointer[rx.State] // so that a mask does not keep an automaton alive
	vocabulary *Vocabulary
}

// A mask is the tokens that fit in a state of the lexemes of a set, as far as that does not depend
// on the text of these lexemes.
type mask struct {
	shared []weak.Pointer[tokens] // of shapes in the vocabulary's cache
	rest   tokens
	late   []int32 // tokens that depend on the text
	leaves []leaf  // nodes below which tokens depend on the text
}

// A leaf is a node where lexemes end on whose text the next set depends.
type leaf struct {
	tier   int
	node   int32
	accept *rx.Accept
	late   bool // no token that leaves the lexemes at node is in the mask
}

func (m *mask) size() int { return m.rest.size() + 4*len(m.late) + 32*len(m.leaves) }

// lives reports whether the shapes of m are still cached, and keeps them alive for w.
func (m *mask) lives(w *walker) bool {
	for _, s := range m.shared {
		t := s.Value()
		if t == nil {
			return false
		}
		w.alive = append(w.alive, t)
	}
	return true
}

// addTo sets the bits of m. The caller has checked that m lives.
func (m *mask) addTo(words []uint32) {
	for _, s := range m.shared {
		s.Value().addTo(words)
	}
	m.rest.addTo(words)
}

func (w *walker) maskLexeme(t thread, words []uint32) error {
	m, err := w.find(t, true)
	if err != nil {
		return err
	}
	if len(m.late) > 0 || len(m.leaves) > 0 {
		return w.maskText(t, m, words)
	}
	m.addTo(words)
	return nil
}

// find returns the mask of a thread within lexemes, cached or new. w.alive keeps its shapes alive.
// If based is true, the mask may be derived from that of a similar state.
func (w *walker) find(t thread, based bool) (*mask, error) {
	key := maskKey{t.set, weak.Make(t.lex), w.v}
	if have := w.g.memo.mask(key); have != nil && have.lives(w) {
		return have, nil
	}
	row, err := w.sc.row(t.lex)
	if err != nil {
		return nil, err
	}
	made := &mask{}
	done := false
	if based {
		base, err := w.base(t.lex, row)
		if err != nil {
			return nil, err
		}
		if base != nil {
			if done, err = w.differ(t, made, base); err != nil {
				return nil, err
			}
		}
	}
	if !done {
		if err := w.make(t, made, row); err != nil {
			return nil, err
		}
	}
	w.g.memo.keepMask(key, made)
	return made, nil
}

// make fills in m from the shapes of the thread's state.
func (w *walker) make(t thread, m *mask, row *rx.Row) error {
	found := len(w.found)
	for n := range w.v.tiers {
		sh, err := w.shape(n, t.lex, row, !t.set.nexts)
		if err != nil {
			return err
		}
		if sh.inside.words == nil {
			w.found = append(w.found, sh.inside.ids...)
		} else {
			m.shared = append(m.shared, weak.Make(sh.inside))
			w.alive = append(w.alive, sh.inside)
		}
		if err := w.exits(t, n, sh, m); err != nil {
			return err
		}
	}
	m.rest = tokensOf(w.found[found:], w.v.words)
	w.found = w.found[:found]
	return nil
}

// exits adds the tokens that fit by leaving the lexemes of t to w.found. It adds to m what depends
// on the text.
func (w *walker) exits(t thread, tier int, sh *shape, m *mask) error {
	for i := range sh.exits {
		if err := w.exit(t, tier, &sh.exits[i], m); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) exit(t thread, tier int, e *exit, m *mask) error {
	accept := t.lex.AcceptOf(e.slots)
	to, err := w.g.advance(w.sc, []end{{t.set, accept, t.builder, nil, true}})
	late := errors.Is(err, errLate)
	switch {
	case err != nil && !late:
		return err
	case !late && (to == nil || !to.lives()):
		return nil
	}
	if late || t.set.checks && t.set.mayRefuse(accept, t.builder) {
		for _, n := range e.gathered {
			m.leaves = append(m.leaves, leaf{tier, n, accept, late})
		}
		for _, n := range e.nodes {
			m.leaves = append(m.leaves, leaf{tier, n, accept, late})
		}
	}
	if late {
		return nil
	}
	tr := w.v.tiers[tier].trie
	after := []thread{{set: to}}
	w.late = w.late[:0]
	if e.rest != nil {
		w.found = append(w.found, e.rest.at(0)...)
		if err := w.walk(e.rest, 0, after); err != nil {
			return err
		}
	}
	for _, n := range e.nodes {
		w.found = append(w.found, tr.at(n)...)
		if err := w.walk(tr, n, after); err != nil {
			return err
		}
	}
	m.late = append(m.late, w.late...)
	return nil
}

// narrow is the number of live bytes up to which a state's shape is computed each time and not
// cached.
var narrow = 48

// shape returns the shape of tier n from st. If it is cached and gather is set, the rests of tokens
// are gathered in one trie.
func (w *walker) shape(n int, st *rx.State, row *rx.Row, gather bool) (*shape, error) {
	tier := &w.v.tiers[n]
	if row.Live.Len() <= narrow {
		return w.sc.shaper.shape(w.sc, w.v, tier.trie, st, 0)
	}
	key, ok := st.Key(tier.window + 1)
	if !ok {
		return w.sc.shaper.shape(w.sc, w.v, tier.trie, st, 0)
	}
	kept := shapeKey{key, n, gather}
	if have := w.v.shapes.find(kept); have != nil {
		return have, nil
	}
	outside := 0
	if gather {
		outside = manyOutside
	}
	made, err := w.sc.shaper.shape(w.sc, w.v, tier.trie, st, outside)
	if err != nil {
		return nil, err
	}
	w.v.shapes.keep(kept, made)
	return made, nil
}
