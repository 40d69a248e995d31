package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// embed reads rows of a table by token ids.
type embed struct{ ordinary }

func (o embed) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

// reference dequantizes rows of the table. A table that is also the head's weight is interleaved,
// and a row is collected first. Other tables are read in the file's layout.
func (embed) reference(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize := e.stored(n.Weight), e.tier.dequantizer(n.Weight.DType)
	packed, from, to := e.weights[n.Weight], 0, n.Weight.RowBytes()
	if a, ok := n.Attr.(plan.EmbedAttr); ok {
		blocks := n.Weight.DType.BlockLen()
		from, to = a.First/blocks*n.Weight.DType.BlockBytes(), (a.First+a.Columns)/blocks*n.Weight.DType.BlockBytes()
	}
	return []kernel{{size: func() int { return e.size(n.Out) }, grain: 16, run: func(worker, lo, hi int) {
		for r := lo; r < hi; r++ {
			y, id := e.row(n.Out, r), int(e.ids[r])
			if id >= w.Rows() { // only a part's table has fewer rows than the vocabulary
				id = 0
			}
			if packed == nil {
				dequantize(y, w.Row(id)[from:to])
			} else {
				row := e.desks[worker].embedding[:packed.blocks*packed.format.bytes]
				packed.row(row, id)
				dequantize(y, row[from:to])
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	}}}, nil
}

func (embed) bound(e *executable, n *plan.Node) (func(r int), error) { return e.tableBound(n), nil }

func (embed) desk(n *plan.Node, _ *plan.Limits) deskSize {
	return deskSize{embedding: n.Weight.RowBytes()}
}

// tableBound returns bounds for rows of a table: exact, except that a GPU may store the table, or
// its scales, as f16.
func (e *executable) tableBound(n *plan.Node) func(r int) {
	d, by := n.Weight.DType, 0.0
	if e.lim.Activations == tensor.F16 && d.BlockLen() > 1 && !plan.InBytes(d) {
		by = 1. / (1 << 11)
	}
	return func(r int) {
		to := e.bound(n.Out, r)
		for i, v := range e.row(n.Out, r) {
			to[i] = float32(by * (math.Abs(float64(v)) + 1./(1<<14))) // steps are constant below 2^-14
		}
	}
}
