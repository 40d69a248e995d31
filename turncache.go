package realizar

import (
	"container/list"
	"fmt"
	"strings"
	"sync"
	"weak"
)

const (
	maxTurns     = 64        // grammars in a turnCache
	maxTurnBytes = 128 << 10 // bytes of a key in it
)

// A turnCache has the most recently used grammars of turns, so that requests with the same tools
// share a grammar and its masks.
type turnCache struct {
	mu    sync.Mutex
	known map[string]*list.Element // of *cachedTurn
	order list.List                // the most recently used first
}

type cachedTurn struct {
	key     string
	content *Grammar // kept alive because its address is in the key
	grammar weak.Pointer[compiledGrammar]
}

// key returns a string of everything that the grammar of the turn depends on, except the model.
func (c *conversation) key(content *Grammar) string {
	var b strings.Builder
	r := c.request
	fmt.Fprintf(&b, "%p %q %v %v %d %q %v", content, c.tail, r.Continue, c.calls, r.ToolChoice.Mode, r.ToolChoice.Name, r.SingleCall)
	if c.calls {
		for _, t := range r.Tools {
			fmt.Fprintf(&b, " %q %v %q", t.Name, t.Strict, t.Parameters)
		}
	}
	return b.String()
}

// get returns the grammar of key. It calls compile if the cache has none or it is worn.
func (t *turnCache) get(key string, content *Grammar, compile func() (*compiledGrammar, error)) (*compiledGrammar, error) {
	if have := t.find(key); have != nil {
		return have, nil
	}
	made, err := compile()
	if err != nil || len(key) > maxTurnBytes {
		return made, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]*list.Element{}
	}
	if e, ok := t.known[key]; ok {
		t.order.Remove(e)
	}
	t.known[key] = t.order.PushFront(&cachedTurn{key, content, weak.Make(made)})
	if t.order.Len() > maxTurns {
		last := t.order.Remove(t.order.Back()).(*cachedTurn)
		delete(t.known, last.key)
	}
	return made, nil
}

// find returns the grammar of key, or nil if the cache has none or it is worn.
func (t *turnCache) find(key string) *compiledGrammar {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.known[key]
	if !ok {
		return nil
	}
	g := e.Value.(*cachedTurn).grammar.Value()
	if g == nil || g.worn.Load() {
		return nil
	}
	t.order.MoveToFront(e)
	return g
}
