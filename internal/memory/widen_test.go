package memory

import (
	"testing"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// A device's chunk of prompts is what its memory allows: it costs no context, and little of the
// cache.
func TestChunkIsHalved(t *testing.T) {
	m := build(t, modeltest.Llama(t, modeltest.Context(4096), modeltest.HeadDim(32)))
	backend := cpu.New(1)
	plan := func(chunk int, free int64) (wide, narrow engine.Config) {
		of := func(chunk int) engine.Config {
			b := &roomy{cpu: backend, free: free}
			kind := backends.Processor
			kind.Chunk = chunk
			p := Planner{Program: m.Program, Made: 4096, Device: &backends.Device{Backend: b, Kind: kind}, Backend: b, Host: backend.Memory(),
				Options: Options{Parallel: 8, Cache: tensor.F16, Activations: cpu.Rounds}}
			c, err := p.Config()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		return of(chunk), of(0)
	}
	_, narrow := plan(0, 0)
	one := narrow
	one.States = 1
	size, err := one.Memory(m.Program, backend)
	if err != nil {
		t.Fatal(err)
	}
	least := int64(size.States) + int64(size.Scratch)
	found := map[int]bool{}
	for free := 2 * least; free < 200*least; free += free/16 + 1 {
		wide, narrow := plan(4096, free)
		if wide.Context != narrow.Context || float64(wide.States) < 15.0/16*float64(narrow.States) {
			t.Errorf("with %d bytes a chunk of %d has a context of %d and %d bytes of cache; without it %d and %d", free, wide.Chunk, wide.Context, wide.States, narrow.Context, narrow.States)
		}
		found[wide.Chunk] = true
	}
	if !found[0] || !found[4096] || len(found) < 3 {
		t.Errorf("chunks are %v", found)
	}
}

// Devices that run a model together have the chunk of each.
func TestChunkOfSeveral(t *testing.T) {
	m := build(t, modeltest.Llama(t, modeltest.Context(4096), modeltest.HeadDim(32)))
	backend, kind := cpu.New(1), backends.Processor
	kind.Chunk = 512
	for _, c := range []struct {
		numbers []int
		want    int
	}{{nil, 512}, {[]int{1}, 512}, {[]int{0, 1}, 1024}, {[]int{0, 1, 2, 3}, 2048}} {
		b := &roomy{cpu: backend, free: 8 << 30}
		p := Planner{Program: m.Program, Made: 4096, Device: &backends.Device{Backend: b, Kind: kind, Numbers: c.numbers}, Backend: b, Host: backend.Memory(),
			Options: Options{Parallel: 8, Cache: tensor.F16, Activations: cpu.Rounds}}
		if got, err := p.Config(); err != nil || got.Chunk != c.want {
			t.Errorf("devices %v: a chunk of %d, %v; want %d", c.numbers, got.Chunk, err, c.want)
		}
	}
}
