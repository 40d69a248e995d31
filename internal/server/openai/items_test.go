package openai

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/realizar/realizar/internal/budget"
)

// TestKeptItems checks that items are found while there is room for them, and that items in use
// stay.
func TestKeptItems(t *testing.T) {
	k, b := newKeptItems(), budget.New(1<<30)
	one := func(text string) string {
		m := newResponseMessage()
		m.Content[0].Text = text
		k.keep(b.OpenSpare, m)
		return m.ID
	}
	first, second := one("first"), one("second")
	if found, ok := k.find(first); !ok || found.item.message.Content != "first" || found.item.message.Role != "assistant" {
		t.Fatalf("%+v, %v", found, ok)
	}
	const large = keptItemBytes - keptItemCost
	for range keptItemsBytes/keptItemBytes - 1 {
		one(strings.Repeat("a", large))
	}
	one(strings.Repeat("a", keptItemBytes-3*keptItemCost)) // one must go
	if _, ok := k.find(second); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := k.find(first); !ok {
		t.Error("the one that was asked for is gone")
	}
	if id := one(strings.Repeat("a", keptItemBytes)); k.known[id] != nil {
		t.Error("one that is too large was kept")
	}
	if k.bytes > keptItemsBytes || k.order.Len() != len(k.known) || int64(k.bytes) != b.Stats().Spare {
		t.Errorf("%d bytes, %d and %d items, and %+v", k.bytes, k.order.Len(), len(k.known), b.Stats())
	}
}

// TestKeptItemsGiveWay checks that items use only memory that requests leave free, and are dropped
// when a request takes it.
func TestKeptItemsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, b := newKeptItems(), budget.New(10*keptItemCost)
		request := b.Open("", func() { t.Error("a request gave way to items") })
		if err := request.Reserve(8 * keptItemCost); err != nil {
			t.Fatal(err)
		}
		one := func() string {
			m := newResponseMessage()
			k.keep(b.OpenSpare, m)
			return m.ID
		}
		first, second := one(), one()
		third := one()
		if _, ok := k.find(first); ok || k.known[second] == nil || k.known[third] == nil {
			t.Errorf("%d items in the room of two", len(k.known))
		}
		if err := request.Reserve(2 * keptItemCost); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if _, ok := k.find(third); ok || k.bytes != 0 || b.Stats().Spare != 0 {
			t.Errorf("%d bytes, and %+v", k.bytes, b.Stats())
		}
		none := one()
		request.Close()
		if last := one(); k.known[none] != nil || k.known[last] == nil {
			t.Error("an item was kept without room, or none with it")
		}
	})
}
