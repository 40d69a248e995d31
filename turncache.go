package realizar

import (
	"container/list"
	"fmt"
	"strings"
	"sync"
	"weak"
)

// The most grammars of turns that are known, and the most bytes of what one is made of.
const (
	maxTurns     = 64
	maxTurnBytes = 128 << 10
)

// A turnCache is the grammars of the turns that were asked for last: requests with the same
// tools share one, and the masks that it has made.
type turnCache struct {
	mu    sync.Mutex
	known map[string]*list.Element // of *cachedTurn
	order list.List                // the one that was asked for last comes first
}

type cachedTurn struct {
	key     string
	content *Grammar // whose address is in the key
	grammar weak.Pointer[compiledGrammar]
}

// key is what the grammar of the turn depends on, beside the model.
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

// get is the grammar of that key, which compile makes where it is not there, or worn.
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

// find is the grammar of that key if it is there and not worn.
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
