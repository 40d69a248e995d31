package grammar

import (
	"errors"
	"slices"
	"weak"

	"github.com/realizar/realizar/internal/rx"
)

// An outline is what tokens do from a state whose text matters to what follows: which stay
// within its lexemes, and the nodes of the vocabulary where the others leave. Sets have it in
// common: what follows is found anew for each text.
type outline struct {
	inside mask
	leaves []leaf
}

// leaf is a node where lexemes end and from which some tokens go on.
type leaf struct {
	tier   int
	node   int32
	accept *rx.Accept
}

// prefix is what is read when a token comes to l.
func (l *leaf) prefix(v *Vocabulary) []byte {
	tr := v.tiers[l.tier].trie
	return v.pieces[tr.below(l.node)[0]][:tr.nodes[l.node].depth]
}

// maskThen sets the bits of the tokens that fit after a thread within lexemes whose text
// matters.
func (w *walker) maskThen(t thread, words []uint32) error {
	o, err := w.outline(t.lex, true)
	if err != nil {
		return err
	}
	o.inside.addTo(words)
	w.found = w.found[:0]
	for i := range o.leaves {
		l := &o.leaves[i]
		read := t.text
		for _, b := range l.prefix(w.v) {
			read = read.add(b)
		}
		if err := w.leave(end{t.set, l.accept, t.builder, read, false}, l); err != nil {
			return err
		}
	}
	found := tokens{ids: w.found}
	found.addTo(words)
	return nil
}

// leave adds the tokens that fit after lexemes end at l. Where what comes next does not hang on
// their text, it is the same for all.
func (w *walker) leave(e end, l *leaf) error {
	found := len(w.found)
	any := e
	any.text, any.any = nil, true
	if e.set.allow(e.accept, e.builder, e.text) {
		err := w.leaveTo(any, l)
		if !errors.Is(err, errLate) {
			return err
		}
		w.found = w.found[:found]
	}
	return w.leaveTo(e, l)
}

// allow reports whether all these lexemes may be that text.
func (s *set) allow(accept *rx.Accept, b *Builder, t *text) bool {
	for _, id := range accept.IDs {
		for _, w := range s.accepted(id, b) {
			if w.on.fits != nil && !w.on.fits([]byte(t.String())) {
				return false
			}
		}
	}
	return true
}

// leaveTo adds the tokens that fit where e comes to at l. Those that hang on no text are kept.
func (w *walker) leaveTo(e end, l *leaf) error {
	to, err := w.g.advance(w.sc, []end{e})
	if err != nil || to == nil || !to.lives() {
		return err
	}
	key := afterKey{to, w.v, l.tier, l.node}
	if e.any {
		if have := w.g.memo.afterLeaf(key); have != nil {
			w.found = append(w.found, have.ids...)
			return have.err
		}
	}
	tr := w.v.tiers[l.tier].trie
	found := len(w.found)
	w.found = append(w.found, tr.at(l.node)...)
	err = w.walk(tr, l.node, []thread{{set: to}})
	if e.any && (err == nil || errors.Is(err, errLate)) {
		w.g.memo.keepAfterLeaf(key, &leafTokens{slices.Clone(w.found[found:]), err})
	}
	return err
}

// outline is the outline of a state: a kept one, or a new one, whose tokens are alive as long as
// w.alive is.
func (w *walker) outline(st *rx.State, based bool) (*outline, error) {
	key := maskKey{nil, weak.Make(st), w.v}
	if have := w.g.memo.outline(key); have != nil && have.inside.lives(w) {
		return have, nil
	}
	row, err := w.sc.row(st)
	if err != nil {
		return nil, err
	}
	made := &outline{}
	done := false
	if based {
		base, err := w.base(st, row)
		if err != nil {
			return nil, err
		}
		if base != nil {
			if done, err = w.differOutline(made, st, base); err != nil {
				return nil, err
			}
		}
	}
	if !done {
		made = &outline{}
		if err := w.makeOutline(made, st, row); err != nil {
			return nil, err
		}
	}
	w.g.memo.keepOutline(key, made)
	return made, nil
}

// makeOutline makes o of the shapes of st.
func (w *walker) makeOutline(o *outline, st *rx.State, row *rx.Row) error {
	w.found = w.found[:0]
	for n := range w.v.tiers {
		sh, err := w.shape(n, st, row, false)
		if err != nil {
			return err
		}
		w.takeInside(&o.inside, sh)
		o.add(n, sh, st)
	}
	o.inside.rest = tokensOf(w.found, w.v.words)
	return nil
}

// add adds the exits of a shape, which is of st and has nodes alone.
func (o *outline) add(tier int, sh *shape, st *rx.State) {
	for _, e := range sh.exits {
		accept := st.AcceptOf(e.slots)
		for _, n := range e.nodes {
			o.leaves = append(o.leaves, leaf{tier, n, accept})
		}
	}
}

// differOutline makes o of that of base; false where they are too different.
func (w *walker) differOutline(o *outline, st, base *rx.State) (bool, error) {
	of, err := w.outline(base, false)
	if err != nil {
		return false, err
	}
	words := make([]uint32, w.v.words)
	of.inside.addTo(words)
	for n, tier := range w.v.tiers {
		p := &w.sc.shaper
		sh, ok, err := p.differ(w.sc, w.v, tier.trie, st, base, words)
		if err != nil || !ok {
			return false, err
		}
		sh.inside.addTo(words)
		o.add(n, sh, st)
		for _, l := range of.leaves {
			if l.tier == n && !p.isDirty(l.node) {
				o.leaves = append(o.leaves, l)
			}
		}
	}
	o.inside.rest = tokens{words: words}
	return true, nil
}
