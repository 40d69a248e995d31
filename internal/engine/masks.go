package engine

import (
	"math"
	"slices"
)

// A Mask is the tokens that may be chosen: bit i%32 of word i/32 allows token i. Requests
// that have the same Mask share its place in the executable's memory. Its words must never
// change once a request has it.
type Mask struct {
	Words []uint32 // [vocabulary/32, rounded up]
}

// without is m less ids; a nil m allows all tokens.
func (m *Mask) without(ids []int32, vocab int) *Mask {
	less := m
	for _, id := range ids {
		if id < 0 || int(id) >= vocab {
			continue
		}
		if less == m {
			less = &Mask{}
			if m != nil {
				less.Words = slices.Clone(m.Words)
			} else {
				less.Words = slices.Repeat([]uint32{math.MaxUint32}, (vocab+31)/32)
			}
		}
		less.Words[id/32] &^= 1 << (id % 32)
	}
	return less
}

// masks are what the first MinTokens tokens of an answer are chosen by, and what those
// after them are, as far as that does not depend on the tokens; nil allows all. A bias of
// -Inf is a mask here, which chooses the same.
func (r *Request) masks(vocab int) (early, later *Mask) {
	var banned []int32
	for _, b := range r.Bias {
		if bans(b.Bias) {
			banned = append(banned, b.Token)
		}
	}
	later = r.Allowed.without(banned, vocab)
	if early = later; r.MinTokens > 0 {
		early = later.without(r.Stop, vocab)
	}
	return early, later
}

// bans says that a token with the bias b may not be chosen.
func bans(b float32) bool { return b < -math.MaxFloat32 }

// A maskTable says what the executable's masks are. A mask that a step under way uses
// stays as it is; another one is found by its identity until its place is needed. There
// are as many places as steps under way have rows that choose, so that one is always
// there.
type maskTable struct {
	slots []maskSlot // mask i+1 is slots[i]
	ids   map[*Mask]int32
	next  int // the slot to look at first for a place
}

type maskSlot struct {
	mask *Mask // that it is found by, or nil
	uses int   // rows of steps under way
}

// A fill is a mask that the executable is given before a step, or before it chooses.
type fill struct {
	id    int32
	words []uint32
}

func newMaskTable(n int) maskTable {
	return maskTable{slots: make([]maskSlot, n), ids: map[*Mask]int32{}}
}

// take is the id of m, which one more row uses, and whether it is new: the executable has
// to be given it. Nobody finds a nil m again.
func (t *maskTable) take(m *Mask) (id int32, isNew bool) {
	if id, found := t.ids[m]; found {
		t.slots[id-1].uses++
		return id, false
	}
	for t.slots[t.next].uses > 0 {
		t.next = (t.next + 1) % len(t.slots)
	}
	id = int32(t.next + 1)
	t.next = (t.next + 1) % len(t.slots)
	t.forget(id)
	t.slots[id-1] = maskSlot{mask: m, uses: 1}
	if m != nil {
		t.ids[m] = id
	}
	return id, true
}

// forget has nobody find mask id again.
func (t *maskTable) forget(id int32) {
	if at := &t.slots[id-1]; at.mask != nil {
		delete(t.ids, at.mask)
		at.mask = nil
	}
}

// useMask is the id of m for a row of f. The executable is given it before f.
func (e *Engine) useMask(f *flight, m *Mask) int32 {
	id, isNew := e.masks.take(m)
	if isNew {
		f.fills = append(f.fills, fill{id, m.Words})
	}
	f.masks = append(f.masks, id)
	return id
}

// setMasks gives the executable the masks that f is the first to use.
func (e *Engine) setMasks(f *flight) error {
	for _, fill := range f.fills {
		if err := e.exe.SetMask(fill.id, fill.words); err != nil {
			return err
		}
	}
	return nil
}

// letMasks says that f uses its masks no longer: it is done, or did not begin.
func (e *Engine) letMasks(f *flight) {
	for _, id := range f.masks {
		e.masks.slots[id-1].uses--
	}
	f.masks = f.masks[:0]
}
