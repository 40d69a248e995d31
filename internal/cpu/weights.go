package cpu

import (
	"context"
	"fmt"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Weights returns the bytes that [Backend.Compile] allocates for weights besides the program's own.
func (b *Backend) Weights(p *plan.Program, lim plan.Limits) int {
	n, interleaved := 0, b.interleaved(p, &lim)
	for _, w := range interleaved {
		n += w.bytes()
	}
	for _, w := range copies(p, interleaved) {
		n += copyBytes(w)
	}
	return n
}

// interleaved returns the interleaved weights of p's products, without data.
func (b *Backend) interleaved(p *plan.Program, lim *plan.Limits) map[*tensor.Tensor]*interleaved {
	all := map[*tensor.Tensor]*interleaved{}
	for i := range p.Nodes {
		for _, w := range p.Nodes[i].Weights() {
			if w.Role == plan.Matrix && b.inRecords(w.Tensor, lim) {
				f, q := blockFormats[w.DType], b.tier.quantized
				all[w.Tensor] = &interleaved{format: f, lanes: q.lanes, words: q.words, rows: w.Rows(), blocks: w.Cols() / f.values}
			}
		}
	}
	return all
}

// load reads all weights, in the order of their use, so that no step waits for a disk, and
// interleaves those of products. A weight that is not finite is an error.
func (e *executable) load(ctx context.Context, loaded plan.Loaded) error {
	memory, err := reserve(e.backend.Weights(e.p, e.lim))
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
		switch w, c := e.weights[t], e.copies[t]; {
		case w != nil:
			w.data, memory = memory[:w.bytes():w.bytes()], memory[w.bytes():]
			if t.Source != nil {
				err = w.fillDerived(job, t)
			} else {
				err = w.take(job, t)
			}
		case c != nil:
			c.Data, memory = memory[:t.Size():t.Size()], memory[copyBytes(t):]
			err = copyDerived(job, c.Data, t)
		default:
			err = read(job, t)
		}
		if err != nil {
			return fmt.Errorf("cpu: %s: %w", t.Name, err)
		}
		if loaded != nil {
			loaded(t, spare[t])
		}
	}
	return nil
}

// take fills w with the rows of t, which are in a file, and checks them, a group at a time, so that
// the check reads from a cache.
func (w *interleaved) take(job *measurement, t *tensor.Tensor) error {
	size := w.lanes * t.RowBytes()
	return firstOf(t, job.pieces(w.groups(), 1, func(_, lo, hi int) error {
		rows := t.Data[lo*size : min(hi*size, len(t.Data))]
		w.fill(rows, lo, hi)
		return tensor.CheckFinite(t.DType, rows)
	}))
}

// read reads and checks a weight that is not copied.
func read(job *measurement, t *tensor.Tensor) error {
	const about = 1 << 20
	size := max(1, about/t.DType.BlockBytes()) * t.DType.BlockBytes()
	return firstOf(t, job.pieces(len(t.Data), size, func(_, lo, hi int) error {
		return tensor.CheckFinite(t.DType, t.Data[lo:hi])
	}))
}

// firstOf returns err or, if that reports a number that is not finite, the error of the first such
// number in t.
func firstOf(t *tensor.Tensor, err error) error {
	if err == nil {
		return nil
	}
	if first := tensor.CheckFinite(t.DType, t.Data); first != nil {
		return first
	}
	return err
}

// spare returns the weights of which steps read only a few rows: tables, and those that are
// interleaved or copied.
func (e *executable) spare() map[*tensor.Tensor]bool {
	all := map[*tensor.Tensor]bool{}
	for i := range e.p.Nodes {
		for _, w := range e.p.Nodes[i].Weights() {
			few := w.Role == plan.Table || e.weights[w.Tensor] != nil || e.copies[w.Tensor] != nil
			before, seen := all[w.Tensor]
			all[w.Tensor] = few && (before || !seen)
		}
	}
	return all
}
