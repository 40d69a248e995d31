package grammar

import (
	"encoding/binary"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// memo is what a grammar keeps: sets by content, the sets that follow them, and masks. When
// that is too much it begins anew.
type memo struct {
	limit int

	mu    sync.RWMutex
	sets  map[string]*set
	after map[step]*set
	masks map[maskKey]*mask
	lines map[maskKey]*outline
	again map[againKey]*alternative
	size  int
}

// A step is from one set over lexemes that end, or from two.
type step struct {
	set, other       *set
	accept, together *rx.Accept
	text             string // where it matters
}

// stepOf is the step over these ends; false where they are too many to be kept, or their texts
// matter.
func stepOf(ends []end) (step, bool) {
	switch {
	case len(ends) == 1:
		return step{set: ends[0].set, accept: ends[0].accept, text: ends[0].text.String()}, true
	case len(ends) == 2 && ends[0].text == nil && ends[1].text == nil:
		return step{set: ends[0].set, accept: ends[0].accept, other: ends[1].set, together: ends[1].accept}, true
	}
	return step{}, false
}

func newMemo(limit int) *memo {
	m := &memo{limit: limit}
	m.drop()
	return m
}

func (m *memo) find(s step) *set {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.after[s]
}

func (m *memo) keep(s step, to *set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += 2 + len(s.text)/32; m.size > m.limit {
		m.drop()
	}
	m.after[s] = to
}

func (m *memo) drop() {
	m.sets, m.after, m.size = map[string]*set{}, map[step]*set{}, 0
	m.masks, m.lines, m.again = map[maskKey]*mask{}, map[maskKey]*outline{}, map[againKey]*alternative{}
}

// intern is the set of the maker's kernel: one it has, or a new one.
func (m *memo) intern(k *maker, key []byte) (*set, error) {
	key = key[:0]
	for _, i := range k.kernel {
		key = binary.LittleEndian.AppendUint64(key, i.of.seq)
		key = binary.LittleEndian.AppendUint32(key, uint32(i.dot))
		if i.to.set != nil {
			key = binary.LittleEndian.AppendUint64(key, i.to.set.seq)
			key = binary.LittleEndian.AppendUint64(key, i.to.rule.seq)
		} else {
			key = binary.LittleEndian.AppendUint64(key, 0)
			key = binary.LittleEndian.AppendUint64(key, 0)
		}
	}
	if k.accepts {
		key = append(key, 1)
	}
	m.mu.RLock()
	have := m.sets[string(key)]
	m.mu.RUnlock()
	if have != nil {
		return have, nil
	}
	made, err := k.set()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.sets[string(key)]; have != nil {
		return have, nil
	}
	if m.size += 4 + made.size; m.size > m.limit {
		m.drop()
	}
	m.sets[string(key)] = made
	return made, nil
}

func (m *memo) mask(k maskKey) *mask {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.masks[k]
}

func (m *memo) keepMask(k maskKey, made *mask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += 8 + made.rest.size()/32; m.size > m.limit { // an item takes about 32 bytes
		m.drop()
	}
	m.masks[k] = made
}

func (m *memo) outline(k maskKey) *outline {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.lines[k]
}

func (m *memo) keepOutline(k maskKey, made *outline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += 8 + (made.inside.rest.size()+24*len(made.leaves))/32; m.size > m.limit {
		m.drop()
	}
	m.lines[k] = made
}

// againKey is an alternative whose symbol at dot is a Then, and what follows its text.
type againKey struct {
	of   *alternative
	dot  int
	next *symbol
}

// continued is the alternative that waits for next and then for what comes after dot in of: one
// for all texts that next follows.
func (m *memo) continued(of *alternative, dot int, next *symbol) *alternative {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := againKey{of, dot, next}
	a := m.again[key]
	if a == nil {
		if m.size += 4 + len(of.symbols)/4; m.size > m.limit {
			m.drop()
		}
		a = newAlternative(append([]*symbol{next}, of.symbols[dot+1:]...))
		m.again[key] = a
	}
	return a
}
