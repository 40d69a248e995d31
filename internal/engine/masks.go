package engine

import (
	"math"
	"slices"
)

// A Mask is a set of allowed tokens: bit i%32 of word i/32 allows token i. Requests with the same
// *Mask share its entry in the executable's table. Its words must not change once a request has it.
type Mask struct {
	Words []uint32 // [vocabulary/32, rounded up]
}

// without returns m without ids; a nil m allows all tokens.
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

// masks returns the masks for the first MinTokens tokens of an answer and for the later ones, as
// far as they do not depend on the tokens; nil allows all. A bias of -Inf becomes part of a mask,
// with the same result.
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

// bans reports whether a bias of b forbids its token.
func bans(b float32) bool { return b < -math.MaxFloat32 }

// A maskTable tracks the executable's table of masks. A mask does not change while a step in flight
// uses it. An unused mask is found by its pointer until its entry is needed. The table has an entry
// for every row that can sample in the steps in flight, so one is always free.
type maskTable struct {
	slots []maskSlot // slots[i] is the mask with id i+1
	ids   map[*Mask]int32
	next  int // slot at which the search for a free one starts
}

type maskSlot struct {
	mask *Mask // that is found by its pointer, or nil
	uses int   // rows of steps in flight
}

// A fill is a mask to set in the executable before a step begins or samples.
type fill struct {
	id    int32
	words []uint32
}

func newMaskTable(n int) maskTable {
	return maskTable{slots: make([]maskSlot, n), ids: map[*Mask]int32{}}
}

// take returns the id of m for one more row. isNew is true if the executable must be given the
// mask. A nil m is not found again.
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

// forget makes mask id unfindable.
func (t *maskTable) forget(id int32) {
	if at := &t.slots[id-1]; at.mask != nil {
		delete(t.ids, at.mask)
		at.mask = nil
	}
}

// useMask returns the id of m for a row of f. The executable gets new masks before f.
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

// letMasks releases the masks of f, which is done or did not begin.
func (e *Engine) letMasks(f *flight) {
	for _, id := range f.masks {
		e.masks.slots[id-1].uses--
	}
	f.masks = f.masks[:0]
}
