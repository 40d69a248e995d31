package grammar

import (
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// Most states within the name of a member, within free text or in a choice of texts do with most
// tokens as another does: the state of any text. It is found as the one that most bytes lead
// to, and both are walked together. Where they come to one state, and no lexeme has ended on
// the way, all tokens that go on do the same, and are not looked at.

// maxApart is how many nodes may be walked to tell two states apart.
var maxApart = 20_000

// A span is nodes of a trie from one on.
type span struct{ from, end int32 }

// base is a state that st may do as: to which most bytes lead, and from which half of all bytes
// lead where they do from st. It is nil where there is none.
func (w *walker) base(st *rx.State, row *rx.Row) (*rx.State, error) {
	if row.Live.Len() <= narrow {
		return nil, nil
	}
	var count [256]int
	for _, class := range row.Class {
		count[class]++
	}
	most := -1
	for class, next := range row.Next {
		if next != nil && (most < 0 || count[class] > count[most]) {
			most = class
		}
	}
	if most < 0 || row.Next[most] == st {
		return nil, nil
	}
	base := row.Next[most]
	other, err := w.sc.row(base)
	if err != nil {
		return nil, err
	}
	same := 0
	for b := range 256 {
		if row.Next[row.Class[b]] == other.Next[other.Class[b]] {
			same++
		}
	}
	if same < 128 {
		return nil, nil
	}
	return base, nil
}

// differ walks a tier from st and from base. In words, which has the tokens that fit from base, it
// clears those for which st may be otherwise; its shape has what these do from st. p.dirty are
// their nodes. It is false where they are too many.
func (p *shaper) differ(sc *scratch, v *Vocabulary, tr *trie, st, base *rx.State, words []uint32) (*shape, bool, error) {
	row, err := sc.row(st)
	if err != nil {
		return nil, false, err
	}
	other, err := sc.row(base)
	if err != nil {
		return nil, false, err
	}
	p.begin(v, tr, 0, visit{row: row, twin: other})
	for left := maxApart; ; {
		at := &p.open[len(p.open)-1]
		if at.kid == at.end {
			if len(p.open) == 1 {
				return p.finish(v), true, nil
			}
			p.open = p.open[:len(p.open)-1]
			p.leave(v, tr, st, at)
			continue
		}
		b, n := tr.bytes[at.kid], tr.kids[at.kid]
		at.kid++
		next := at.row.Next[at.row.Class[b]]
		var twin *rx.State
		if at.twin != nil {
			twin = at.twin.Next[at.twin.Class[b]]
		}
		if next == twin && !at.apart || next == nil && at.apart {
			continue
		}
		if left--; left < 0 {
			return nil, false, nil
		}
		to := visit{node: n, apart: at.apart}
		if !at.apart {
			to.apart = next == nil || next.Accept() != nil || twin != nil && twin.Accept() != nil
			end := n + 1
			if to.apart {
				end = tr.nodes[n].skip
			}
			p.dirty = append(p.dirty, span{n, end})
			for _, id := range tr.ids[tr.nodes[n].first:tr.nodes[end].first] {
				words[id/32] &^= 1 << (id % 32)
			}
		}
		if next == nil {
			continue
		}
		if twin != nil && tr.nodes[n].kids > 0 {
			if to.twin, err = sc.row(twin); err != nil {
				return nil, false, err
			}
		}
		if err := p.enter(sc, v, tr, st, next, to); err != nil {
			return nil, false, err
		}
	}
}

// isDirty reports whether node n is among p.dirty.
func (p *shaper) isDirty(n int32) bool {
	i, found := slices.BinarySearchFunc(p.dirty, n, func(s span, n int32) int { return int(s.from - n) })
	return found || i > 0 && n < p.dirty[i-1].end
}

// differ makes the mask of a thread of that of base; false where they are too different.
func (w *walker) differ(t thread, m *mask, base *rx.State) (bool, error) {
	at := t
	at.lex = base
	of, err := w.find(at, false)
	if err != nil {
		return false, err
	}
	words := make([]uint32, w.v.words)
	of.addTo(words)
	m.late = slices.Clone(of.late) // of those that are otherwise the text decides as well
	found := len(w.found)
	for n, tier := range w.v.tiers {
		p := &w.sc.shaper
		sh, ok, err := p.differ(w.sc, w.v, tier.trie, t.lex, base, words)
		if err != nil || !ok {
			w.found = w.found[:found]
			return false, err
		}
		sh.inside.addTo(words)
		for _, l := range of.leaves {
			if l.tier == n && !p.isDirty(l.node) {
				m.leaves = append(m.leaves, l)
			}
		}
		if err := w.exits(t, n, sh, m); err != nil {
			return false, err
		}
	}
	(&tokens{ids: w.found[found:]}).addTo(words)
	w.found = w.found[:found]
	m.rest = tokens{words: words}
	return true, nil
}
