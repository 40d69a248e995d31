package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/tensor"
)

// A cachedPage identifies a page of the cache by all that an event says of it.
type cachedPage struct {
	hash, parent uint64
	tokens       [32]int32
	salt         string
	group        int
	host         bool
}

func pageOf(c *engine.CacheEvent) cachedPage {
	return cachedPage{c.Hash, c.Parent, [32]int32(c.Tokens), c.Salt, c.Group, c.Host}
}

// A cacheIndex is the list of cached pages that follows from events alone. The engine's lock guards
// it.
type cacheIndex struct {
	pages map[cachedPage]bool
	err   error // the first event that does not fit
}

func (x *cacheIndex) apply(c *engine.CacheEvent) {
	if c.Kind == engine.PagesCleared {
		clear(x.pages)
		return
	}
	p := pageOf(c)
	if stored := c.Kind == engine.PageStored; x.pages[p] == stored && x.err == nil {
		x.err = fmt.Errorf("a page is stored twice or was not there: kind %d, %+v", c.Kind, p)
	} else if stored {
		x.pages[p] = true
	} else {
		delete(x.pages, p)
	}
}

// equals returns an error if the index is not the engine's own list.
func (x *cacheIndex) equals(e *engine.Engine) (err error) {
	e.Cached(func(pages []engine.CacheEvent) {
		if err = x.err; err != nil {
			return
		}
		if len(pages) != len(x.pages) {
			err = fmt.Errorf("events list %d cached pages, the engine has %d", len(x.pages), len(pages))
		}
		hashes := map[uint64]cachedPage{}
		for i := range pages {
			p := pageOf(&pages[i])
			if !x.pages[p] {
				err = errors.Join(err, fmt.Errorf("events do not list page %+v", p))
			}
			p.group, p.host = 0, false
			if other, ok := hashes[p.hash]; ok && other != p || p.hash == 0 {
				err = errors.Join(err, fmt.Errorf("two histories have hash %x", p.hash))
			}
			hashes[p.hash] = p
		}
	})
	return err
}

// The pages of a prompt are stored as a chain whose hashes depend on tokens and salt alone.
func TestCacheEvents(t *testing.T) {
	var stored [][]cachedPage
	for _, salt := range []string{"", "", "a"} {
		var all []cachedPage
		c := engine.Config{Context: 256, Parallel: 1, Cache: tensor.F32, Events: func(c *engine.CacheEvent) {
			if c.Kind == engine.PageStored {
				all = append(all, pageOf(c))
			}
		}}
		e, err := engine.New(t.Context(), (&hashModel{windows: []int{0}}).program(), &quick{}, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Run(t.Context(), &engine.Request{Prompt: unlike(70), Tokens: 1, Salt: salt}, func(*engine.Result) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 || all[1].parent != all[0].hash || all[0].parent != 0 || all[0].salt != salt || all[1].salt != "" {
			t.Fatalf("a prompt of 70 tokens with salt %q stored %+v", salt, all)
		}
		stored = append(stored, all)
	}
	if stored[0][1] != stored[1][1] || stored[0][1].hash == stored[2][1].hash {
		t.Errorf("hashes %x and %x of equal prompts, %x with a salt", stored[0][1].hash, stored[1][1].hash, stored[2][1].hash)
	}
}
