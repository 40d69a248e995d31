package realizar

import (
	"fmt"
	"slices"
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
	mu    sync.Mutex
	pages []*engine.Kept // by replica
	key   string         // of the model that filled pages
}

// Bytes returns the size of the pages in bytes. It is 0 while the model is open.
func (k *KeptCache) Bytes() (n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pages {
		n += int64(p.Bytes())
	}
	return n
}

// open returns the pages of each of n replicas of a model with this key. It drops pages of another
// key.
func (k *KeptCache) open(key string, n int) []*engine.Kept {
	if k == nil {
		return make([]*engine.Kept, n)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != key || len(k.pages) != n {
		k.key, k.pages = key, make([]*engine.Kept, n)
		for i := range k.pages {
			k.pages[i] = new(engine.Kept)
		}
	}
	return slices.Clone(k.pages)
}

// cacheKey returns a string of everything that the values in the KV cache depend on.
func (m *Model) cacheKey(p *memory.Planner, o *Options, size *engine.Config) string {
	return fmt.Sprintf("%s%s %q %q %v %v %v", m.files.Version(), p.Device.Name(), p.Device.Description(), o.Kernels, size.Cache, size.Activations, p.Program.Head != nil)
}
