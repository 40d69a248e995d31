package cpu

import (
	"errors"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// gather joins the columns of all parts. Each part reads those of the others in their memory.
type gather struct{ ordinary }

var errAlone = errors.New("the program is a part of one that is divided, and is not connected to the others")

func (o gather) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (gather) reference(e *executable, n *plan.Node) ([]kernel, error) {
	if e.port == nil {
		return nil, errAlone
	}
	columns := n.Attr.(plan.GatherAttr).Columns
	return e.exchange(func() int { return e.size(n.Out) }, 1, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			y := e.row(n.Out, r)
			for i, from := range e.port.link.members {
				c := columns.New(i)
				copy(y[c.Lo:c.Hi], from.row(n.In[0], r)[c.Lo-columns[i].Lo:])
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	}), nil
}
