package cpu

import (
	"context"
	"runtime"

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
// disk, and interleaves those of products.
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
	job := &measurement{workers: e.workers, done: make(chan struct{})}
	for _, t := range e.p.Weights() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w := e.weights[t]; w != nil {
			w.data, memory = memory[:w.bytes():w.bytes()], memory[w.bytes():]
			job.pass(w.groups(), func(_, lo, hi int) { w.fill(t.Data, lo, hi) })
		} else {
			touch(t.Data)
		}
		if loaded != nil {
			loaded(t, spare[t])
		}
	}
	return nil
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

// touch reads a byte of each page of data.
func touch(data []byte) {
	const page = 4096
	var touched byte
	for i := 0; i < len(data); i += page {
		touched ^= data[i]
	}
	runtime.KeepAlive(touched)
}
