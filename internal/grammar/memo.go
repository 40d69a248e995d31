package grammar

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// A memo caches the sets of a grammar by content, their successors, and masks. It drops all of them
// when they exceed its limit.
type memo struct {
	limit int

	mu    sync.RWMutex
	sets  map[string]*set
	after map[step]*set
	masks map[maskKey]*mask
	parts map[maskKey]*apart // the keys have no set
	again map[againKey]*alternative
	size  int
}

// A step is the lexemes of one set, or of two, that end at a byte.
type step struct {
	set, other       *set
	accept, together *rx.Accept
	text             string // if the next set depends on it
	any              bool   // the text is not known
}

// stepOf returns the step of the ends. It returns false if the cache does not hold such a step:
// more than two ends, or two of which one has a text.
func stepOf(ends []end) (step, bool) {
	switch {
	case len(ends) == 1:
		return step{set: ends[0].set, accept: ends[0].accept, text: ends[0].text.String(), any: ends[0].any}, true
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

// itemBytes is the approximate size of a unit of memo.size, in bytes: an item takes 32, and the
// maps take as much again.
const itemBytes = 64

// kept returns the approximate size of m in bytes.
func (m *memo) kept() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return itemBytes * int64(m.size)
}

func (m *memo) drop() {
	m.sets, m.after, m.size = map[string]*set{}, map[step]*set{}, 0
	m.masks, m.parts, m.again = map[maskKey]*mask{}, map[maskKey]*apart{}, map[againKey]*alternative{}
}

// intern returns the set of the maker's kernel, cached or new.
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
	if m.size += 8 + made.size()/32; m.size > m.limit {
		m.drop()
	}
	m.masks[k] = made
}

func (m *memo) apart(k maskKey) *apart {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.parts[k]
}

func (m *memo) keepApart(k maskKey, made *apart) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += 8 + made.size/itemBytes; m.size > m.limit {
		m.drop()
	}
	m.parts[k] = made
}

// An againKey is an alternative whose symbol at dot is a Then or a Bind, with the symbol that
// follows the Then, or the text of the Bind.
type againKey struct {
	of   *alternative
	dot  int
	next *symbol
	text string
}

// continued returns an item that waits for next and then for the symbols after the dot of i. All
// texts with the same next share it.
func (m *memo) continued(i item, next *symbol) item {
	return m.derived(againKey{of: i.of, dot: i.dot, next: next}, i, func() []*symbol {
		return append([]*symbol{next}, i.of.symbols[i.dot+1:]...)
	})
}

// bound returns an item that waits for the symbols after the dot of i, in which late is bound to
// text.
func (m *memo) bound(i item, late *symbol, text string) item {
	rest := i.of.symbols[i.dot+1:]
	if !slices.Contains(rest, late) {
		i.dot++
		return i
	}
	return m.derived(againKey{of: i.of, dot: i.dot, text: text}, i, func() []*symbol {
		symbols := slices.Clone(rest)
		bound := late.bound(text)
		for n, s := range symbols {
			if s == late {
				symbols[n] = bound
			}
		}
		return symbols
	})
}

// derived returns an item at the start of the alternative for a key, cached or new.
func (m *memo) derived(key againKey, i item, symbols func() []*symbol) item {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.again[key]
	if a == nil {
		a = newAlternative(symbols())
		if m.size += 4 + len(a.symbols)/4 + len(key.text)/32; m.size > m.limit {
			m.drop()
		}
		m.again[key] = a
	}
	return item{of: a, to: i.to}
}
