package tokenizer

import (
	"math"
	"sync"
)

// part is a part of a piece during merging. Parts form a linked list in the slice that holds them.
type part struct {
	id         int32 // its token, -1 for none
	prev, next int32 // neighbours, -1 at the ends
	start, end int32 // its text, for rules that use it
	merged     bool  // it has merged into its left neighbor
}

// mergeRules says which neighbors merge.
type mergeRules interface {
	// merge returns the token that the neighbors left and right merge into, and its rank. The pair
	// with the lowest rank merges first; of equal ranks, the leftmost.
	merge(left, right *part) (id, rank int32, ok bool)
}

// proposal is a pair that may merge.
type proposal struct {
	key         int64 // rank, then position of the left part
	left, right int32 // the tokens when it was proposed
	id          int32 // the merged token
}

// merger holds the memory of merging a piece.
type merger struct {
	parts []part
	queue []proposal // a heap, least key first
}

// maxPiece is the length in bytes above which a piece is cut, so that positions fit in an int32.
const maxPiece = math.MaxInt32 / 2

// mergers is a pool of mergers.
type mergers struct{ pool sync.Pool }

// keptParts is the largest capacity, in parts, of a merger that is kept for reuse.
const keptParts = 1 << 16

// mergerBytes is the memory of a merger in bytes per part: the part and its proposals, of which
// there may be more than one.
const mergerBytes = 24 + 2*24

// get returns an empty merger with room for n parts, which w holds until put.
func (p *mergers) get(w *work, n int) *merger {
	w.holdLarge(n * mergerBytes)
	m, ok := p.pool.Get().(*merger)
	if !ok {
		m = new(merger)
	}
	m.parts, m.queue = room(m.parts, n), room(m.queue, n)
	return m
}

// room returns s emptied and with room for n elements. Unlike [slices.Grow], it does not write to
// new memory, which would take long for long pieces.
func room[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, 0, n)
	}
	return s[:0]
}

// put takes back a merger from get(w, n).
func (p *mergers) put(w *work, n int, m *merger) {
	w.releaseLarge(n * mergerBytes)
	if cap(m.parts) <= keptParts {
		p.pool.Put(m)
	}
}

// add appends a part.
func (m *merger) add(id, start, end int32) {
	n := int32(len(m.parts))
	m.parts = append(m.parts, part{id: id, prev: n - 1, next: n + 1, start: start, end: end})
}

// run merges until no rule applies, in O(n log n) time for n parts. The remaining parts are the
// list that begins with the first part.
func (m *merger) run(w *work, rules mergeRules) {
	if len(m.parts) == 0 {
		return
	}
	m.parts[len(m.parts)-1].next = -1
	for i := range len(m.parts) - 1 {
		w.step(1)
		m.propose(rules, int32(i), int32(i+1))
	}
	for len(m.queue) > 0 {
		w.step(1)
		p := m.pop()
		at := int32(p.key & math.MaxUint32)
		left := &m.parts[at]
		if left.merged || left.next < 0 {
			continue
		}
		right := &m.parts[left.next]
		if left.id != p.left || right.id != p.right {
			// One of them has merged since. They may still merge into the same token.
			if id, _, ok := rules.merge(left, right); !ok || id != p.id {
				continue
			}
		}
		left.id, left.end, left.next = p.id, right.end, right.next
		right.merged = true
		if left.next >= 0 {
			m.parts[left.next].prev = at
		}
		if left.prev >= 0 {
			m.propose(rules, left.prev, at)
		}
		if left.next >= 0 {
			m.propose(rules, at, left.next)
		}
	}
}

func (m *merger) propose(rules mergeRules, left, right int32) {
	l, r := &m.parts[left], &m.parts[right]
	if id, rank, ok := rules.merge(l, r); ok {
		m.push(proposal{key: int64(rank)<<32 | int64(left), left: l.id, right: r.id, id: id})
	}
}

// The queue is a heap with four children per element, which misses the cache half as often as two
// for long pieces.
const children = 4

func (m *merger) push(p proposal) {
	m.queue = append(m.queue, p)
	q := m.queue
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / children
		if q[parent].key <= p.key {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = p
}

func (m *merger) pop() proposal {
	q := m.queue
	top, p := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	m.queue = q
	if len(q) == 0 {
		return top
	}
	i := 0
	for {
		first := children*i + 1
		if first >= len(q) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(q)); c++ {
			if q[c].key < q[least].key {
				least = c
			}
		}
		if p.key <= q[least].key {
			break
		}
		q[i] = q[least]
		i = least
	}
	q[i] = p
	return top
}
