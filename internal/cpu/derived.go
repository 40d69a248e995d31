package cpu

import (
	"sync/atomic"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Derived weights are computed once: those that are not interleaved are copied in the layout of a
// file.

// copies returns tensors without data for the derived matrices of p that are not interleaved, by
// the weight that each replaces.
func copies(p *plan.Program, interleaved map[*tensor.Tensor]*interleaved) map[*tensor.Tensor]*tensor.Tensor {
	all := map[*tensor.Tensor]*tensor.Tensor{}
	for i := range p.Nodes {
		for _, w := range p.Nodes[i].Tensors() {
			if len(w.Shape) == 2 && w.Source != nil && interleaved[w] == nil {
				all[w] = &tensor.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape}
			}
		}
	}
	return all
}

// copyBytes returns the size of the copy of a weight.
func copyBytes(w *tensor.Tensor) int { return (w.Size() + 63) &^ 63 }

// stored returns a weight whose rows are in memory: w or its copy.
func (e *executable) stored(w *tensor.Tensor) *tensor.Tensor {
	if c := e.copies[w]; c != nil {
		return c
	}
	return w
}

// pieceRows is the number of rows of a derived weight that are computed at a time. A source may
// read only a few bytes of a cache line for each of them.
const pieceRows = 128

// copyDerived writes all rows of t to dst.
func copyDerived(job *measurement, dst []byte, t *tensor.Tensor) error {
	size := t.RowBytes()
	return job.pieces(t.Rows(), pieceRows, func(_, lo, hi int) error {
		return t.ReadRows(dst[lo*size:hi*size], lo, hi)
	})
}

// fillDerived interleaves the rows of t.
func (w *interleaved) fillDerived(job *measurement, t *tensor.Tensor) error {
	size := t.RowBytes()
	rows := make([][]byte, job.workers.count()) // by worker
	return job.pieces(w.groups(), max(1, pieceRows/w.lanes), func(worker, lo, hi int) error {
		first, end := lo*w.lanes, min(hi*w.lanes, w.rows)
		if rows[worker] == nil {
			rows[worker] = make([]byte, max(pieceRows, w.lanes)*size)
		}
		piece := rows[worker][:(end-first)*size]
		if err := t.ReadRows(piece, first, end); err != nil {
			return err
		}
		w.fill(piece, lo, hi)
		return nil
	})
}

// pieces runs work on n items, that many at a time, until one call fails.
func (m *measurement) pieces(n, items int, work func(worker, lo, hi int) error) error {
	var failed atomic.Pointer[error]
	m.pass((n+items-1)/items, func(worker, lo, hi int) {
		for ; lo < hi && failed.Load() == nil; lo++ {
			if err := work(worker, lo*items, min(n, (lo+1)*items)); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
