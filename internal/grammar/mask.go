package grammar

import (
	"fmt"
	"weak"

	"github.com/realizar/realizar/internal/rx"
)

// Mask makes words the mask of the tokens that may come next: bit id%32 of words[id/32] is
// set just where [State.Token] takes token id. words is as long as [Vocabulary.Words] says, or
// longer. The error is [ErrLimit].
func (s State) Mask(v *Vocabulary, words []uint32) error {
	if len(words) < v.words {
		return fmt.Errorf("grammar: a mask of %d words for a vocabulary that takes %d", len(words), v.words)
	}
	clear(words)
	g := s.c.grammar
	sc := g.makers.Get().(*scratch)
	defer g.makers.Put(sc)
	sc.work = 0
	w := &sc.walker
	w.g, w.v, w.sc = g, v, sc
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

// mask sets the bits of the tokens that fit after a thread. Those of several threads are those
// of each.
func (w *walker) mask(t thread, words []uint32) error {
	if t.lex == nil && len(t.set.tokens) > 0 {
		w.v.maskTokens(t.set, words)
	}
	if t.set.then {
		w.found = w.found[:0]
		for _, tier := range w.v.tiers {
			if err := w.walk(tier.trie, 0, []thread{t}); err != nil {
				return err
			}
		}
		found := tokens{ids: w.found}
		found.addTo(words)
		return nil
	}
	if t.lex != nil {
		return w.maskLexeme(t, words)
	}
	states, err := t.set.begin(w.v)
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

// maskTokens sets the bits of the tokens that are terminals which s waits for.
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

// maskKey is what a mask hangs on.
type maskKey struct {
	set        *set
	lex        *rx.State
	vocabulary *Vocabulary
}

// mask is the tokens that fit from a state within lexemes of a set.
type mask struct {
	shared []weak.Pointer[tokens] // of shapes, for as long as the vocabulary keeps these
	rest   tokens
}

// addTo sets the bits of m; false where one of its shapes is gone.
func (m *mask) addTo(words []uint32) bool {
	for _, s := range m.shared {
		t := s.Value()
		if t == nil {
			return false
		}
		t.addTo(words)
	}
	m.rest.addTo(words)
	return true
}

func (w *walker) maskLexeme(t thread, words []uint32) error {
	key := maskKey{t.set, t.lex, w.v}
	if have := w.g.memo.mask(key); have != nil && have.addTo(words) {
		return nil
	}
	made := &mask{}
	w.found = w.found[:0]
	for n := range w.v.tiers {
		sh, err := w.shape(n, t.lex)
		if err != nil {
			return err
		}
		if sh.inside.words != nil {
			sh.inside.addTo(words)
			made.shared = append(made.shared, weak.Make(sh.inside))
		} else {
			w.found = append(w.found, sh.inside.ids...)
		}
		for i := range sh.exits {
			if err := w.exit(t, w.v.tiers[n].trie, &sh.exits[i]); err != nil {
				return err
			}
		}
	}
	made.rest = tokensOf(w.found, w.v.words)
	w.g.memo.keepMask(key, made)
	made.rest.addTo(words)
	return nil
}

// exit adds the tokens that fit by leaving the lexemes of t at e.
func (w *walker) exit(t thread, tr *trie, e *exit) error {
	to, err := w.g.advance(w.sc, []end{{t.set, t.lex.AcceptOf(e.slots), t.builder, nil}})
	if err != nil || to == nil || !to.lives() {
		return err
	}
	after := []thread{{set: to}}
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
	return nil
}

// narrow is the most bytes that a state may go on with for its shape to be made anew and not
// looked up.
var narrow = 48

// shape is the shape of tier n from st.
func (w *walker) shape(n int, st *rx.State) (*shape, error) {
	live, err := st.Live()
	if err != nil {
		return nil, lexemeError(err)
	}
	tier := w.v.tiers[n]
	if live.Len() <= narrow {
		return w.sc.shaper.shape(w.v, tier.trie, st, 0)
	}
	key, ok := st.Key(tier.window + 1)
	if !ok {
		return w.sc.shaper.shape(w.v, tier.trie, st, 0)
	}
	if have := w.v.shapes.find(shapeKey{key, n}); have != nil {
		return have, nil
	}
	made, err := w.sc.shaper.shape(w.v, tier.trie, st, manyOutside)
	if err != nil {
		return nil, err
	}
	w.v.shapes.keep(shapeKey{key, n}, made)
	return made, nil
}
