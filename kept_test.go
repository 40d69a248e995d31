package realizar_test

import (
	"os"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// A model that is opened again finds the pages that it computed before it was closed, unless its
// file or its number formats have changed.
func TestKeptCache(t *testing.T) {
	path := modeltest.Llama(t, modeltest.Context(1024))
	kept := new(realizar.KeptCache)
	options := realizar.Options{Device: "cpu", HostCache: 8 << 20, Kept: kept}
	prompt := strings.Repeat("some words ", 20)
	cached := func(o realizar.Options) int {
		t.Helper()
		m, err := realizar.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}()
		for e, err := range m.Generate(t.Context(), &realizar.Request{Prompt: prompt, Generation: realizar.Generation{MaxTokens: new(1)}}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Finish != nil {
				return e.Finish.Usage.CachedTokens
			}
		}
		t.Fatal("no finish")
		return 0
	}
	if n := cached(options); n != 0 || kept.Bytes() == 0 || kept.Bytes() > options.HostCache {
		t.Errorf("%d tokens are cached at first, %d bytes are kept", n, kept.Bytes())
	}
	found := cached(options)
	if found == 0 {
		t.Error("nothing is found")
	}
	other := options
	other.Cache = realizar.CacheF32
	if n := cached(other); n != 0 {
		t.Errorf("%d tokens of another format are found", n)
	}
	if n := cached(options); n != 0 {
		t.Errorf("%d tokens are found after those of another format", n)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := cached(options); n != 0 {
		t.Errorf("%d tokens of a file that was replaced are found", n)
	}
	none := options
	none.HostCache = 0
	_ = cached(none)
	if n := kept.Bytes(); n != 0 {
		t.Errorf("%d bytes are kept without room", n)
	}
}
