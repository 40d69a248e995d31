package realizar

import (
	"container/list"
	"fmt"
	"strings"
	"sync"

	"github.com/realizar/realizar/internal/grammar"
)

// The most grammars of turns that are kept, and the most bytes of what one is made of.
const (
	maxTurns     = 64
	maxTurnBytes = 256 << 10
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
	whole   *grammar.Grammar
}

// key is what the grammar of the turn depends on, beside the model.
func (c *conversation) key(g *Generation) string {
	var b strings.Builder
	r := c.request
	fmt.Fprintf(&b, "%p %q %v %d %q %v", g.Grammar, c.tail, c.calls, r.ToolChoice.Mode, r.ToolChoice.Name, r.SingleCall)
	if c.calls {
		for _, t := range r.Tools {
			fmt.Fprintf(&b, " %q %v %q", t.Name, t.Strict, t.Parameters)
		}
	}
	return b.String()
}

// get is the grammar of that key, which compile makes where it is not there.
func (t *turnCache) get(key string, content *Grammar, compile func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	t.mu.Lock()
	if e, ok := t.known[key]; ok {
		t.order.MoveToFront(e)
		t.mu.Unlock()
		return e.Value.(*cachedTurn).whole, nil
	}
	t.mu.Unlock()
	whole, err := compile()
	if err != nil || len(key) > maxTurnBytes {
		return whole, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]*list.Element{}
	}
	if e, ok := t.known[key]; ok { // another request was faster
		return e.Value.(*cachedTurn).whole, nil
	}
	t.known[key] = t.order.PushFront(&cachedTurn{key, content, whole})
	if t.order.Len() > maxTurns {
		last := t.order.Remove(t.order.Back()).(*cachedTurn)
		delete(t.known, last.key)
	}
	return whole, nil
}
