package openai

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
)

// Some clients refer to the items of an answer by id in their next turn and do not send them again.
// So these items are kept for a while, in memory that requests leave free; a request that needs the
// memory takes it. The oldest items are dropped first. Ids are random, so that a client cannot
// guess those of others.
const (
	keptItemsBytes = 16 << 20           // all items
	keptItemBytes  = keptItemsBytes / 8 // the largest item
	keptItemCost   = 512                // an item without its texts
)

// keptItems holds items of answers by id. A nil *keptItems is empty.
type keptItems struct {
	mu     sync.Mutex
	known  map[string]*list.Element
	order  list.List       // of keptItem, the oldest first
	memory *budget.Account // reserves bytes; nil if nothing is kept
	bytes  int
}

type keptItem struct {
	id    string
	item  inputItem
	bytes int
}

func newKeptItems() *keptItems { return &keptItems{known: map[string]*list.Element{}} }

// keep keeps a complete item. spare opens the account for its memory.
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
	_ = k.memory.ReserveInt(-first.bytes) // giving back cannot fail
}

// forget drops all items after memory was reclaimed.
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

// find returns the item with the id and makes it the newest.
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

// asInput converts an item of an answer to one of an input. bytes is its size in memory.
func asInput(item responseItem) (in inputItem, bytes int) {
	switch i := item.(type) {
	case *responseMessage:
		in = inputItem{kind: "message", message: chat.Message{Role: "assistant", Content: i.Content[0].Text}, hasContent: true}
	case *responseThought:
		in = inputItem{kind: "reasoning", thought: i.Content[0].Text}
	case *responseCall:
		arguments, _ := json.Marshal(i.Arguments) // a string: Marshal cannot fail
		in = inputItem{kind: "function_call", call: chat.ToolCall{ID: i.CallID, Name: i.Name, Arguments: arguments}}
	}
	return in, keptItemCost + len(in.message.Content) + len(in.thought) + len(in.call.ID) + len(in.call.Name) + len(in.call.Arguments)
}
