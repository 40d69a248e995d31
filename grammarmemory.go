package realizar

import (
	"container/list"
	"sync"
)

// The bytes that compiled grammars keep together for requests to come, and by how much one
// may grow until they are counted again.
const (
	maxGrammarMemory = 32 << 20
	grammarGrowth    = 256 << 10
)

// grammarMemory is the grammars of the process that were used last, as many as there is room
// for, and at least the last one. Nothing else keeps a compiled grammar that no request uses.
type grammarMemory struct {
	mu    sync.Mutex
	order list.List // of *compiledGrammar; the one used last comes first
	at    map[*compiledGrammar]*list.Element
}

var keptGrammars = grammarMemory{at: map[*compiledGrammar]*list.Element{}}

// use notes that c is used, or has grown.
func (k *grammarMemory) use(c *compiledGrammar) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.at[c]; ok {
		k.order.MoveToFront(e)
	} else {
		k.at[c] = k.order.PushFront(c)
	}
	total := int64(0)
	var next *list.Element
	for e := k.order.Front(); e != nil; e = next {
		next = e.Next()
		one := e.Value.(*compiledGrammar)
		size := one.size()
		one.counted.Store(size)
		if total += size; total > maxGrammarMemory && one != c {
			k.order.Remove(e)
			delete(k.at, one)
		}
	}
}

// grew counts the grammars again where c has grown.
func (k *grammarMemory) grew(c *compiledGrammar) {
	if c.size()-c.counted.Load() > grammarGrowth {
		k.use(c)
	}
}
