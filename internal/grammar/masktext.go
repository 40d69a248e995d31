package grammar

import (
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// maskText sets the bits of the tokens that fit after a thread whose mask m depends on the text of
// its lexemes.
func (w *walker) maskText(t thread, m *mask, words []uint32) error {
	own := words
	w.read = t.text.appendTo(w.read[:0])
	length := len(w.read)
	w.found = w.found[:0]
	var refused []*leaf
	for i := range m.leaves {
		l := &m.leaves[i]
		if l.late {
			if err := w.leave(t, l); err != nil {
				return err
			}
			continue
		}
		w.read = append(w.read[:length], l.prefix(w.v)...)
		if !t.set.allow(l.accept, t.builder, w.read) {
			refused = append(refused, l)
		}
	}
	if len(refused) > 0 {
		own = make([]uint32, w.v.words)
	}
	m.addTo(own)
	for _, l := range refused {
		for _, id := range w.v.tiers[l.tier].trie.below(l.node) {
			own[id/32] &^= 1 << (id % 32)
		}
	}
	for _, l := range refused {
		if err := w.below(t, l); err != nil {
			return err
		}
	}
	for _, id := range m.late {
		threads, err := w.after(t, w.v.pieces[id])
		if err != nil {
			return err
		}
		if len(threads) > 0 {
			w.found = append(w.found, id)
		}
	}
	(&tokens{ids: w.found}).addTo(words)
	if len(refused) > 0 {
		(&tokens{words: own}).addTo(words)
	}
	return nil
}

// prefix returns the bytes from the root to l.
func (l *leaf) prefix(v *Vocabulary) []byte {
	tr := v.tiers[l.tier].trie
	return v.pieces[tr.below(l.node)[0]][:tr.nodes[l.node].depth]
}

// leave adds to w.found the tokens that fit because the lexemes of t end at l.
func (w *walker) leave(t thread, l *leaf) error {
	read := t.text
	for _, b := range l.prefix(w.v) {
		read = read.add(b)
	}
	to, err := w.g.advance(w.sc, []end{{t.set, l.accept, t.builder, read, false}})
	if err != nil || to == nil || !to.lives() {
		return err
	}
	return w.tokensAt(l, []thread{{set: to}})
}

// below adds to w.found all tokens at l and below that fit after t.
func (w *walker) below(t thread, l *leaf) error {
	threads, err := w.after(t, l.prefix(w.v))
	if err != nil || len(threads) == 0 {
		return err
	}
	return w.tokensAt(l, slices.Clone(threads))
}

// tokensAt adds to w.found the tokens at l and below that fit after the threads.
func (w *walker) tokensAt(l *leaf, threads []thread) error {
	tr := w.v.tiers[l.tier].trie
	w.late = w.late[:0]
	w.found = append(w.found, tr.at(l.node)...)
	if err := w.walk(tr, l.node, threads); err != nil {
		return err
	}
	if len(w.late) > 0 {
		return errLate // although the text is known
	}
	return nil
}

// after returns the threads after t and a text. They are valid until the next step.
func (w *walker) after(t thread, text []byte) ([]thread, error) {
	sc := w.sc
	sc.threads = append(sc.threads[:0], t)
	for _, b := range text {
		sc.threads, sc.other = sc.other[:0], sc.threads
		if err := sc.spend(len(sc.other)); err != nil {
			return nil, err
		}
		if err := w.g.step(sc, w.v, b); err != nil {
			return nil, err
		}
		if len(sc.threads) == 0 {
			break
		}
	}
	return sc.threads, nil
}

// mayRefuse reports whether any of the lexemes has a condition on its text.
func (s *set) mayRefuse(accept *rx.Accept, b *Builder) bool {
	for _, id := range accept.IDs {
		for _, w := range s.accepted(id, b) {
			if w.on.fits != nil {
				return true
			}
		}
	}
	return false
}

// allow reports whether all of the lexemes accept the text.
func (s *set) allow(accept *rx.Accept, b *Builder, text []byte) bool {
	for _, id := range accept.IDs {
		for _, w := range s.accepted(id, b) {
			if w.on.fits != nil && !w.on.fits(text) {
				return false
			}
		}
	}
	return true
}
