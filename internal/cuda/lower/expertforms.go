package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// expertForm reports whether n, a mixture, needs the kernels for all forms of mixtures.
func expertForm(n *plan.Node) bool {
	a := n.Attr.(plan.ExpertsAttr)
	return a.Identity > 0 || a.Route.Before || a.Scales != nil || a.Route.Given || a.Route.Score == plan.SparseMixer
}

type routeForm struct {
	scales            driver.DevicePtr
	jitter            float64
	given             driver.DevicePtr
	givenStride, real int32
}

type routeFormArgs struct {
	route routeArgs
	form  routeForm
}

type dealArgs struct {
	x                                     driver.DevicePtr
	stride, apart, cols, used, experts, _ int32
	chosen, slots, weights, count         driver.DevicePtr
	out                                   device.Forms
}

// deal returns the launch that gives each slot cols columns of its token's row of x in a form, and
// the location of the slots' rows. With weights that multiply inputs, it multiplies. The columns of an
// expert begin apart columns after those of the one before.
func (m *mixture) deal(n *plan.Node, x device.Forms, cols, apart int, form kind) (Launch, device.Forms, error) {
	e := &m.e
	to := device.Forms{Stride: int32(rowStride(cols)), Cols: int32(cols), By: half(0)}
	switch form {
	case inBF16:
		to.Bf16 = e.out
	case inF16:
		to.F16 = e.out
	default:
		to.F32 = e.out
	}
	a := dealArgs{
		x: x.F32, stride: x.Stride, apart: int32(apart), cols: int32(cols), used: int32(m.attr.Route.Used), experts: int32(len(m.attr.Gate)),
		chosen: e.chosen, slots: e.slots, count: m.count(n.Out), out: to,
	}
	if m.attr.Route.Before {
		a.weights = e.weights
	}
	l, err := m.byColumns("expertforms", "deal", m.rows, device.Arguments(&a), int32(m.attr.Route.Used)*to.Stride, nil)
	l.Moves = m.rowsMove(4*cols + m.rowBytes(form, cols))
	return l, to, err
}

type combineFormArgs struct {
	y, x                             driver.DevicePtr
	stride, xStride, cols, used      int32
	experts, before                  int32
	chosen, slots, weights, residual driver.DevicePtr
	residualStride, _                int32
	count                            driver.DevicePtr
	out                              device.Forms
}

// combineForm returns the launch that adds up the experts of each token.
func (m *mixture) combineForm(s *fuse.Stage) (Launch, error) {
	n, e, to := s.Node(), &m.e, m.forms(s.Out())
	a := combineFormArgs{
		y: e.out, stride: to.Stride, cols: to.Cols, used: int32(m.attr.Route.Used), experts: int32(len(m.attr.Gate)),
		chosen: e.chosen, slots: e.slots, weights: e.weights, count: m.count(n.Out), out: to,
	}
	if m.attr.Identity > 0 {
		x := m.forms(n.In[2])
		a.x, a.xStride = x.F32, x.Stride
	}
	if m.attr.Route.Before {
		a.before = 1
	}
	if s.Add != nil {
		r := m.forms(s.Residual())
		a.residual, a.residualStride = r.F32, r.Stride
	}
	l, err := m.launch("expertforms", "combineForm", m.rows, device.Arguments(&a), 256, elementGrid(m.rows, to.Stride))
	l.Moves = m.combineMoves(s)
	return l, err
}
