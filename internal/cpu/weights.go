package cpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Weights is the memory that [Backend.Compile] takes for weights beside the
// program's own, in bytes.
func (b *Backend) Weights(p *plan.Program, lim plan.Limits) int {
	n := 0
	for _, w := range b.interleaved(p, &lim) {
		n += w.bytes()
	}
	return n
}

// interleaved are the weights of p's products, without data.
func (b *Backend) interleaved(p *plan.Program, lim *plan.Limits) map[*tensor.Tensor]*interleaved {
	all := map[*tensor.Tensor]*interleaved{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; b.product(n, lim) {
			f := blockFormats[n.Weight.DType]
			q := b.tier.quantized
			all[n.Weight] = &interleaved{format: f, lanes: q.lanes, words: q.words, rows: n.Weight.Rows(), blocks: n.Weight.Cols() / f.values}
		}
	}
	return all
}

// load reads all weights, in the order of their use, so that no step waits for a
// disk, and interleaves those of products. A weight that is not finite is an error.
func (e *executable) load(ctx context.Context, loaded plan.Loaded) error {
	size := 0
	for _, w := range e.weights {
		size += w.bytes()
	}
	memory, err := reserve(size)
	if err != nil {
		return err
	}
	e.memory = memory
	spare := e.spare()
	job := &measurement{workers: e.workers, done: make(chan any)}
	for _, t := range e.p.Weights() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var work func(lo, hi int) bool // reports whether all that it read is finite
		items := 0
		if w := e.weights[t]; w != nil {
			w.data, memory = memory[:w.bytes():w.bytes()], memory[w.bytes():]
			work, items = w.take(t), w.groups()
		} else {
			work, items = read(t)
		}
		var bad atomic.Bool
		job.pass(items, func(_, lo, hi int) {
			if !work(lo, hi) {
				bad.Store(true)
			}
		})
		if bad.Load() {
			if err := tensor.CheckFinite(t.DType, t.Data); err != nil { // the first one
				return fmt.Errorf("cpu: %s: %w", t.Name, err)
			}
		}
		if loaded != nil {
			loaded(t, spare[t])
		}
	}
	return nil
}

// take fills w with groups of t's rows and checks them, a group at a time, so that
// what is checked is near the processor still.
func (w *interleaved) take(t *tensor.Tensor) (work func(lo, hi int) bool) {
	size := w.blocks * w.format.bytes * w.lanes
	return func(lo, hi int) bool {
		for g := lo; g < hi; g++ {
			w.fill(t.Data, g, g+1)
			if tensor.CheckFinite(t.DType, t.Data[g*size:min((g+1)*size, len(t.Data))]) != nil {
				return false
			}
		}
		return true
	}
}

// read reads and checks a weight that stays where it is, in so many pieces.
func read(t *tensor.Tensor) (work func(lo, hi int) bool, pieces int) {
	const about = 1 << 20
	size := max(1, about/t.DType.BlockBytes()) * t.DType.BlockBytes()
	return func(lo, hi int) bool {
		return tensor.CheckFinite(t.DType, t.Data[lo*size:min(hi*size, len(t.Data))]) == nil
	}, (len(t.Data) + size - 1) / size
}

// spare are the weights of which no step reads more than a few rows: those that are
// interleaved and tables of embeddings.
func (e *executable) spare() map[*tensor.Tensor]bool {
	all := map[*tensor.Tensor]bool{}
	for i := range e.p.Nodes {
		if n := &e.p.Nodes[i]; n.Weight != nil {
			few := n.Op == plan.Embed || e.backend.product(n, &e.lim)
			before, seen := all[n.Weight]
			all[n.Weight] = few && (before || !seen)
		}
	}
	return all
}
