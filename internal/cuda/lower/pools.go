package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// cacheNames are the names of cache formats in kernel names.
var cacheNames = map[tensor.DType]string{tensor.F32: "f32", tensor.F16: "f16", tensor.Q8_0: "q8", tensor.F8_E4M3: "f8"}

// A Pool is the memory for the pages of one state; see kernels/kv.cuh.
type Pool struct {
	State plan.State
	Base  driver.DevicePtr
	Bytes int // size of a page
	Apart int // bytes from one page to the next
}

// PlanPools places the pools in one block of memory, and returns the block's size in bytes.
func PlanPools(p *plan.Program, l *plan.Limits) (pools []Pool, bytes int, err error) {
	if cacheNames[l.Cache] == "" {
		return nil, 0, fmt.Errorf("cuda: no %v cache; use %v, %v, %v or %v", l.Cache, tensor.F32, tensor.F16, tensor.Q8_0, tensor.F8_E4M3)
	}
	if dim := p.MisfitHead(l.Cache); dim > 0 {
		return nil, 0, fmt.Errorf("cuda: no %v cache for heads of %d values, which are not a multiple of %d; use %v", l.Cache, dim, plan.HeadUnit(l.Cache), tensor.F16)
	}
	for _, s := range p.States {
		n, err := l.PageOf(s)
		if err != nil {
			return nil, 0, fmt.Errorf("cuda: %w", err)
		}
		k := Pool{State: s, Base: driver.DevicePtr(bytes), Bytes: n, Apart: weights.Align(n)}
		pools = append(pools, k)
		bytes += k.Apart * l.Pages[s.Group]
	}
	return pools, bytes, nil
}

type poolArgs struct {
	base                        driver.DevicePtr
	apart                       int64
	pageTokens, kvHeads, dim, _ int32
}

type tableArgs struct{ pages, places driver.DevicePtr }

// A Place is a token's position in its sequence's pages; see kernels/kv.cuh.
type Place struct{ position, shift int32 }

// FillPlaces writes the places of the tokens of b, and marks the remaining ones, up to the shape's
// size, as unused.
func FillPlaces(all []Place, b *plan.Batch, t *plan.PageTable) {
	for q := range b.Seqs() {
		for i := b.Start[q]; i < b.Start[q+1]; i++ {
			all[i] = Place{position: b.Positions[i], shift: t.Start[q] - t.First[q]}
		}
	}
	for i := len(b.Tokens); i < Power(len(b.Tokens)); i++ {
		all[i] = Place{position: -1}
	}
}

// FillSingles writes the tokens of sequences with one, then the token after the last of these, up to
// the shape's number of sequences and once more.
func FillSingles(all []int32, b *plan.Batch) {
	n := 0
	for q := range b.Seqs() {
		if b.Start[q+1]-b.Start[q] == 1 {
			all[n] = b.Start[q]
			n++
		}
	}
	for i := n; n > 0 && i <= Power(b.Seqs()); i++ {
		all[i] = all[n-1] + 1
	}
}

func (c *Compiler) pool(i int) poolArgs {
	k := &c.Pools[i]
	return poolArgs{base: k.Base, apart: int64(k.Apart), pageTokens: int32(c.Layout.lim.PageTokens), kvHeads: int32(k.State.KVHeads), dim: int32(k.State.HeadDim)}
}

// rowsPoolArgs are the pages of an exact state; see kernels/rows.cuh.
type rowsPoolArgs struct {
	base              driver.DevicePtr
	apart             int64
	pageTokens, width int32
}

// rowsPool returns the location of the rows of an exact state per token, and of its table.
func (c *Compiler) rowsPool(state int) (rowsPoolArgs, tableArgs) {
	k := &c.Pools[state]
	pool := rowsPoolArgs{base: k.Base, apart: int64(k.Apart), pageTokens: int32(c.Layout.lim.PageTokens), width: int32(k.State.Width())}
	return pool, c.pageTable(state)
}

// pageTable returns the location of the table of a state's pages.
func (c *Compiler) pageTable(state int) tableArgs {
	group := c.Layout.p.States[state].Group
	return tableArgs{pages: c.Step.pages[group], places: c.Step.places[group]}
}

// SlotArgs tells kernels where the state of each sequence is. Slot i holds [Size] float32 at base +
// i*apart. The slot of sequence q is slots[2*q] before the step, or -1 for zeros, and slots[2*q+1]
// after it. The two differ, so a kernel may write one while it reads the other.
type SlotArgs struct {
	Base  driver.DevicePtr
	Apart int64
	Slots driver.DevicePtr // [S][2] int32
}

// Slots returns the location of a state that has one slot per sequence.
func (c *Compiler) Slots(state int) SlotArgs {
	k := &c.Pools[state]
	return SlotArgs{Base: k.Base, Apart: int64(k.Apart), Slots: c.Step.pages[k.State.Group]}
}
