package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// position reads rows of a table by the positions of tokens.
type position struct{ ordinary }

func (o position) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (position) reference(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize, a := e.stored(n.Weight), e.tier.dequantizer(n.Weight.DType), n.Attr.(plan.PositionAttr)
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		dequantize(y, w.Row(int(e.batch.Axis(a.Axis, r))))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (position) bound(e *executable, n *plan.Node) (func(r int), error) { return e.tableBound(n), nil }
