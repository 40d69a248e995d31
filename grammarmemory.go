package realizar

import (
	"container/list"
	"sync"
)

const (
	maxGrammarMemory = 32 << 20  // bytes of all compiled grammars that grammarMemory keeps
	grammarGrowth    = 256 << 10 // bytes by which a grammar may grow before they are counted again
)

// A grammarMemory keeps the compiled grammars that the process used most recently, up to
// maxGrammarMemory but at least one. All other references to a compiled grammar that no request
// uses are weak.
type grammarMemory struct {
	mu    sync.Mutex
	order list.List // of *compiledGrammar, the most recently used first
	at    map[*compiledGrammar]*list.Element
}

var keptGrammars = grammarMemory{at: map[*compiledGrammar]*list.Element{}}

// use marks c as the most recently used, counts all grammars, and drops the oldest if there are too
// many bytes.
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

// grew counts the grammars again if c has grown by more than grammarGrowth.
func (k *grammarMemory) grew(c *compiledGrammar) {
	if c.size()-c.counted.Load() > grammarGrowth {
		k.use(c)
	}
}
