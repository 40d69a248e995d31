package grammar

import (
	"encoding/binary"
	"slices"
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
	parts map[maskKey]*apart // without a set
	again map[againKey]*alternative
	size  int
}

// A step is from one set over lexemes that end, or from two.
type step struct {
	set, other       *set
	accept, together *rx.Accept
	text             string // where it matters
	any              bool   // whatever the text is
}

// stepOf is the step over these ends; false where they are too many to be kept, or their texts
// matter.
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

// itemBytes is what one of memo.size takes, about: an item is 32 bytes, and half of all that
// is kept is what finds it.
const itemBytes = 64

// kept is the bytes of what m has, about.
func (m *memo) kept() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return itemBytes * int64(m.size)
}

func (m *memo) drop() {
	m.sets, m.after, m.size = map[string]*set{}, map[step]*set{}, 0
	m.masks, m.parts, m.again = map[maskKey]*mask{}, map[maskKey]*apart{}, map[againKey]*alternative{}
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

// againKey is an alternative whose symbol at dot has text that matters, with the symbol that
// follows a Then, or the text of a Bind.
type againKey struct {
	of   *alternative
	dot  int
	next *symbol
	text string
}

// continued is what waits for next and then for what comes after dot in an alternative: one for
// all texts that next follows.
func (m *memo) continued(i item, next *symbol) item {
	return m.derived(againKey{of: i.of, dot: i.dot, next: next}, i, func() []*symbol {
		return append([]*symbol{next}, i.of.symbols[i.dot+1:]...)
	})
}

// bound is what waits for what comes after dot in an alternative, where late is what text makes
// of it.
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

// derived is an item at the start of the alternative that m has for a key, or of a new one.
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
