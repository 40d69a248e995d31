package openai

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/realizar/realizar/chat"
)

// Clients that are not told otherwise name the items of an answer in their next turn, and do
// not send them again. So those items are kept for a while: as many as there is room for, the
// oldest go first. Their names are random, so that nobody finds those of others.
const (
	keptItemsBytes = 16 << 20
	keptItemBytes  = keptItemsBytes / 8 // the largest
	keptItemCost   = 512                // of one beside its texts
)

// keptItems are the items of answers by their names.
type keptItems struct {
	mu    sync.Mutex
	known map[string]*list.Element
	order list.List // of keptItem, the oldest first
	bytes int
}

type keptItem struct {
	id    string
	item  inputItem
	bytes int
}

func newKeptItems() *keptItems { return &keptItems{known: map[string]*list.Element{}} }

// keep keeps an item that is complete.
func (k *keptItems) keep(item responseItem) {
	in, bytes := asInput(item)
	if k == nil || bytes > keptItemBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	id := item.base().ID
	k.known[id] = k.order.PushBack(keptItem{id, in, bytes})
	for k.bytes += bytes; k.bytes > keptItemsBytes; {
		first := k.order.Remove(k.order.Front()).(keptItem)
		delete(k.known, first.id)
		k.bytes -= first.bytes
	}
}

// find is the item of that name, which counts as new from then on.
func (k *keptItems) find(id string) (inputItem, bool) {
	if k == nil {
		return inputItem{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.known[id]
	if !ok {
		return inputItem{}, false
	}
	k.order.MoveToBack(e)
	return e.Value.(keptItem).item, true
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
