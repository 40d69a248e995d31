package openai

import (
	"strings"
	"testing"
)

// Items are found as long as there is room for them, and those that are asked for stay.
func TestKeptItems(t *testing.T) {
	k := newKeptItems()
	one := func(text string) string {
		m := newResponseMessage()
		m.Content[0].Text = text
		k.keep(m)
		return m.ID
	}
	first, second := one("first"), one("second")
	if item, ok := k.find(first); !ok || item.message.Content != "first" || item.message.Role != "assistant" {
		t.Fatalf("%+v, %v", item, ok)
	}
	const large = keptItemBytes - keptItemCost
	for range keptItemsBytes/keptItemBytes - 1 {
		one(strings.Repeat("a", large))
	}
	one(strings.Repeat("a", keptItemBytes-3*keptItemCost)) // so that one must go
	if _, ok := k.find(second); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := k.find(first); !ok {
		t.Error("the one that was asked for is gone")
	}
	if id := one(strings.Repeat("a", keptItemBytes)); k.known[id] != nil {
		t.Error("one that is too large was kept")
	}
	if k.bytes > keptItemsBytes || k.order.Len() != len(k.known) {
		t.Errorf("%d bytes, %d and %d items", k.bytes, k.order.Len(), len(k.known))
	}
}
