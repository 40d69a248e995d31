package grammar

import (
	"slices"
	"weak"

	"github.com/realizar/realizar/internal/rx"
)

// Most states within a member's name, within free text or in a choice of texts treat most tokens
// like another state, that of any text. This base is the state to which most bytes lead. differ
// walks both states together. Once they meet before a lexeme has ended, the tokens below do the
// same from both, and are skipped.

// apartShare bounds the nodes in which two similar states may differ: 1/apartShare of a tier.
var apartShare = 8

// A span is a range of trie nodes, from from up to but not including end.
type span struct{ from, end int32 }

// base returns the state to which most bytes lead from st, if at least half of all bytes lead to
// the same states from both; else nil.
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

// An apart is the difference between a state and its base.
type apart struct {
	tiers []apartTier // nil if the two differ too much
	size  int         // bytes
}

type apartTier struct {
	shape *shape // of the tokens of dirty nodes
	dirty []span // ascending; the base's mask is right for all other nodes
}

// has reports whether node n is dirty.
func (t *apartTier) has(n int32) bool {
	i, found := slices.BinarySearchFunc(t.dirty, n, func(s span, n int32) int { return int(s.from - n) })
	return found || i > 0 && n < t.dirty[i-1].end
}

// apart returns the difference between st and base, cached or new.
func (w *walker) apart(st, base *rx.State) (*apart, error) {
	key := maskKey{nil, weak.Make(st), w.v}
	if have := w.g.memo.apart(key); have != nil {
		return have, nil
	}
	made := &apart{size: 100}
	for _, tier := range w.v.tiers {
		sh, ok, err := w.sc.shaper.differ(w.sc, w.v, tier.trie, st, base)
		if err != nil {
			return nil, err
		}
		if !ok {
			made.tiers, made.size = nil, 100
			break
		}
		one := apartTier{sh, slices.Clone(w.sc.shaper.dirty)}
		made.size += sh.size + 8*len(one.dirty)
		made.tiers = append(made.tiers, one)
	}
	w.g.memo.keepApart(key, made)
	return made, nil
}

// differ walks a tier from st and from base. It sets p.dirty to the nodes whose tokens may differ,
// and returns their shape from st. It returns false if they are too many.
func (p *shaper) differ(sc *scratch, v *Vocabulary, tr *trie, st, base *rx.State) (*shape, bool, error) {
	row, err := sc.row(st)
	if err != nil {
		return nil, false, err
	}
	other, err := sc.row(base)
	if err != nil {
		return nil, false, err
	}
	p.begin(v, tr, 0, visit{row: row, twin: other})
	for left := len(tr.nodes) / apartShare; ; {
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

// differ fills in the mask of a thread from that of base. It returns false if the states differ too
// much.
func (w *walker) differ(t thread, m *mask, base *rx.State) (bool, error) {
	a, err := w.apart(t.lex, base)
	if err != nil || len(a.tiers) == 0 {
		return false, err
	}
	at := t
	at.lex = base
	of, err := w.find(at, false)
	if err != nil {
		return false, err
	}
	words := make([]uint32, w.v.words)
	of.addTo(words)
	m.late = slices.Clone(of.late) // dirty ones may stay: their text is read in any case
	found := len(w.found)
	for n := range a.tiers {
		tier, tr := &a.tiers[n], w.v.tiers[n].trie
		for _, s := range tier.dirty {
			for _, id := range tr.ids[tr.nodes[s.from].first:tr.nodes[s.end].first] {
				words[id/32] &^= 1 << (id % 32)
			}
		}
		tier.shape.inside.addTo(words)
		for _, l := range of.leaves {
			if l.tier == n && !tier.has(l.node) {
				m.leaves = append(m.leaves, l)
			}
		}
		if err := w.exits(t, n, tier.shape, m); err != nil {
			return false, err
		}
	}
	(&tokens{ids: w.found[found:]}).addTo(words)
	w.found = w.found[:found]
	m.rest = tokens{words: words}
	return true, nil
}
