package realizar

import (
	"fmt"
	"sync"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/memory"
)

// A KeptCache keeps pages of the KV cache in host memory from the end of a model to the next time it
// is opened, so that prefixes are found again: the most recently used, up to Options.HostCache
// bytes. [Model.Close] fills it; [Open] takes from it if the files, the device and the numbers
// computed with are the same, and drops its pages otherwise. It is for one model at a time.
type KeptCache struct {
	pages engine.Kept

	mu  sync.Mutex
	key string // of the model that filled pages
}

// Bytes returns how much memory the cache takes while the model is closed.
func (k *KeptCache) Bytes() int64 { return int64(k.pages.Bytes()) }

// open returns the pages for a model with this key.
func (k *KeptCache) open(key string) *engine.Kept {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != key {
		k.pages.Clear()
		k.key = key
	}
	return &k.pages
}

// cacheKey names what the values of a cache depend on.
func (m *Model) cacheKey(p *memory.Planner, o *Options, size *engine.Config) string {
	return fmt.Sprintf("%s%s %q %q %v %v", m.file.Version(), p.Device.Name(), p.Device.Description(), o.Kernels, size.Cache, size.Activations)
}
