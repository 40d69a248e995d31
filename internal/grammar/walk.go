package grammar

import (
	"errors"

	"github.com/realizar/realizar/internal/rx"
)

// A walker finds the tokens of a trie that fit. It is reused.
type walker struct {
	g       *Grammar
	v       *Vocabulary
	sc      *scratch
	threads []thread
	from    []int // index of the first thread of each depth
	found   []int32
	late    []int32   // tokens that depend on an unknown text
	alive   []*tokens // keeps the shapes of masks in use alive
	read    []byte    // text of the lexemes
}

// walk adds the tokens of tr below node that fit after the threads to w.found, and those that
// depend on an unknown text to w.late.
func (w *walker) walk(tr *trie, node int32, threads []thread) error {
	live, err := w.live(threads)
	if err != nil {
		return err
	}
	if live.IsEmpty() {
		return nil
	}
	w.threads = append(w.threads[:0], threads...)
	w.from = append(w.from[:0], 0)
	return w.visit(tr, node, &live)
}

// visit walks the children of a node, which the threads of the last depth have reached. It skips
// bytes that are not live.
func (w *walker) visit(tr *trie, node int32, live *rx.ByteSet) error {
	from := tr.nodes[node].kid
	for i, b := range tr.bytes[from : from+int32(tr.nodes[node].kids)] {
		if !live.Has(b) {
			continue
		}
		n := tr.kids[int(from)+i]
		ok, err := w.step(b)
		if errors.Is(err, errLate) {
			w.late = append(w.late, tr.below(n)...)
			continue
		}
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		w.found = append(w.found, tr.at(n)...)
		if err := w.visit(tr, n, &rx.AllBytes); err != nil {
			return err
		}
		last := len(w.from) - 1
		w.threads, w.from = w.threads[:w.from[last]], w.from[:last]
	}
	return nil
}

// live returns the bytes with which the threads may continue.
func (w *walker) live(threads []thread) (rx.ByteSet, error) {
	var live rx.ByteSet
	for _, t := range threads {
		states := []begun{{t.lex, t.builder}}
		if t.lex == nil {
			var err error
			if states, err = w.sc.begin(t.set, w.v); err != nil {
				return live, err
			}
		}
		for _, st := range states {
			row, err := w.sc.row(st.lex)
			if err != nil {
				return live, err
			}
			live = live.Or(row.Live)
		}
	}
	return live, nil
}

// step adds the successors after b of the threads of the last depth. It reports whether there are
// any.
func (w *walker) step(b byte) (bool, error) {
	first, end := w.from[len(w.from)-1], len(w.threads)
	sc := w.sc
	if end == first+1 && w.threads[first].lex != nil && !w.threads[first].set.then {
		// The common case: one thread that stays within its lexemes.
		t := w.threads[first]
		row, err := sc.row(t.lex)
		if err != nil {
			return false, err
		}
		next := row.Next[row.Class[b]]
		if next == nil {
			return false, nil
		}
		if next.Accept() == nil {
			t.lex = next
			w.from = append(w.from, end)
			w.threads = append(w.threads, t)
			return true, nil
		}
	}
	sc.other, sc.threads = append(sc.other[:0], w.threads[first:end]...), sc.threads[:0]
	if err := sc.spend(len(sc.other)); err != nil {
		return false, err
	}
	if err := w.g.step(sc, w.v, b); err != nil {
		return false, err
	}
	if len(sc.threads) == 0 {
		return false, nil
	}
	w.from = append(w.from, end)
	w.threads = append(w.threads, sc.threads...)
	return true, nil
}
