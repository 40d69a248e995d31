package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// input copies columns of the step's input.
type input struct{ ordinary }

func (o input) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (input) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.InputAttr)
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		copy(y, e.batch.Input[r][a.First:][:a.Columns])
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// bound returns bounds of inputs, which are exact.
func (input) bound(e *executable, n *plan.Node) (func(r int), error) {
	return func(r int) { clear(e.bound(n.Out, r)) }, nil
}
