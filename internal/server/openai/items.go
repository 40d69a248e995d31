package openai

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
)

// Clients that are not told otherwise name the items of an answer in their next turn, and do
// not send them again. So those items are kept for a while: as many as there is room for in
// the memory of requests, to which they give way. The oldest go first. Their names are random,
// so that nobody finds those of others.
const (
	keptItemsBytes = 16 << 20           // the most of all
	keptItemBytes  = keptItemsBytes / 8 // the largest
	keptItemCost   = 512                // of one beside its texts
)

// keptItems are the items of answers by their names. Of nil there are none.
type keptItems struct {
	mu     sync.Mutex
	known  map[string]*list.Element
	order  list.List       // of keptItem, the oldest first
	memory *budget.Account // that they hold; nil: none yet, or all gave way
	bytes  int
}

type keptItem struct {
	id    string
	item  inputItem
	bytes int
}

func newKeptItems() *keptItems { return &keptItems{known: map[string]*list.Element{}} }

// keep keeps an item that is complete, in an account that spare opens.
func (k *keptItems) keep(spare func(evict func()) *budget.Account, item responseItem) {
	in, bytes := asInput(item)
	if k == nil || bytes > keptItemBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.memory == nil {
		var memory *budget.Account
		memory = spare(func() { go k.forget(memory) })
		k.memory = memory
	}
	for k.bytes+bytes > keptItemsBytes || k.memory.ReserveInt(bytes) != nil {
		if k.order.Len() == 0 {
			return
		}
		k.drop()
	}
	id := item.base().ID
	k.known[id] = k.order.PushBack(keptItem{id, in, bytes})
	k.bytes += bytes
}

// drop drops the oldest item.
func (k *keptItems) drop() {
	first := k.order.Remove(k.order.Front()).(keptItem)
	delete(k.known, first.id)
	k.bytes -= first.bytes
	_ = k.memory.ReserveInt(-first.bytes) // what is given back is not refused
}

// forget drops all items, whose memory gave way.
func (k *keptItems) forget(memory *budget.Account) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.memory != memory {
		return
	}
	clear(k.known)
	k.order.Init()
	k.memory, k.bytes = nil, 0
}

// find is the item of that name, which counts as new from then on.
func (k *keptItems) find(id string) (found keptItem, ok bool) {
	if k == nil {
		return found, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.known[id]
	if !ok {
		return found, false
	}
	k.order.MoveToBack(e)
	return e.Value.(keptItem), true
}

// asInput is an item of an answer as one of an input, and its memory.
func asInput(item responseItem) (in inputItem, bytes int) {
	switch i := item.(type) {
	case *responseMessage:
		in = inputItem{kind: "message", message: chat.Message{Role: "assistant", Content: i.Content[0].Text}, hasContent: true}
	case *responseThought:
		in = inputItem{kind: "reasoning", thought: i.Content[0].Text}
	case *responseCall:
		arguments, _ := json.Marshal(i.Arguments) // a string, in which nothing fails
		in = inputItem{kind: "function_call", call: chat.ToolCall{ID: i.CallID, Name: i.Name, Arguments: arguments}}
	}
	return in, keptItemCost + len(in.message.Content) + len(in.thought) + len(in.call.ID) + len(in.call.Name) + len(in.call.Arguments)
}
