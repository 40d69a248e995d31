package realizar

import (
	"fmt"
	"sync"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/memory"
)

// A KeptCache keeps pages of the KV cache in host memory between [Model.Close] and the next [Open]
// of the same model, so that requests find their cached prefixes again. Close stores the most
// recently used pages, up to [Options.HostCache] bytes. Open takes them back if the files, the
// device and the number formats are the same, and drops them otherwise. Only one open model may use
// a KeptCache.
type KeptCache struct {
	pages engine.Kept

	mu  sync.Mutex
	key string // of the model that filled pages
}

// Bytes returns the size of the pages in bytes. It is 0 while the model is open.
func (k *KeptCache) Bytes() int64 { return int64(k.pages.Bytes()) }

// open returns the pages for a model with this key. It drops pages of another key.
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

// cacheKey returns a string of everything that the values in the KV cache depend on.
func (m *Model) cacheKey(p *memory.Planner, o *Options, size *engine.Config) string {
	return fmt.Sprintf("%s%s %q %q %v %v %v", m.files.Version(), p.Device.Name(), p.Device.Description(), o.Kernels, size.Cache, size.Activations, p.Program.Head != nil)
}
