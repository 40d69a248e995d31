package grammar

import (
	"encoding/binary"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// memo is the sets that a grammar keeps: those it has by content, and those that follow them.
// When they are too many it begins anew.
type memo struct {
	limit int

	mu    sync.RWMutex
	sets  map[string]*set
	after map[step]*set
	size  int
	root  *set
}

// A step is from a set over lexemes that end.
type step struct {
	set    *set
	accept *rx.Accept
	text   string // where it matters
}

func newMemo(limit int) *memo {
	return &memo{limit: limit, sets: map[string]*set{}, after: map[step]*set{}}
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
