package lower

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// elementwise implements [plan.Map], [plan.Add] and [plan.GLU] for values that no other stage
// computes, with the elementwise operations that follow.
type elementwise struct{ ordinary }

// functionArgs is a function of one value; see kernels/chain.cuh.
type functionArgs struct {
	which, act          int32
	by, p, n, beta, eps float32
}

func functionOf(m *plan.Node) functionArgs {
	a := m.Attr.(plan.MapAttr)
	c := &a.Curve
	return functionArgs{which: int32(a.Func), act: int32(a.Act), by: float32(a.By), p: float32(c.P), n: float32(c.N), beta: float32(c.Beta), eps: float32(c.Eps)}
}

// The kinds of a linkArgs, in the order of kernels/chain.cuh.
const (
	linkMap int32 = iota
	linkAdd
	linkGated
	linkGate
)

type linkArgs struct {
	kind         int32
	function     functionArgs
	x            driver.DevicePtr
	stride, each int32
	unit         unit
	late         int32
}

// maxLinks is the largest number of operations of a chain.
const maxLinks = 4

type chainArgs struct {
	x            driver.DevicePtr
	stride, cols int32
	count        driver.DevicePtr
	out          device.Forms
	links        [maxLinks]linkArgs
	length, _    int32
}

// late reports whether a unit has a limit of its activation, which units of products lack.
func late(a plan.GLUAttr) bool { return a.Late && a.Limit > 0 }

// setUnit sets the unit of a link.
func (l *linkArgs) setUnit(a plan.GLUAttr) {
	if l.unit = unitOf(a); late(a) {
		l.late = 1
	}
}

// applies reports whether the kernel of n can apply another elementwise operation, m, to its result,
// behind so many.
func applies(n, m *plan.Node, before int) bool {
	switch n.Op {
	case plan.GLU, plan.Map, plan.Add:
		return before+1 < maxLinks
	case plan.RMSNorm, plan.LayerNorm:
		return before == 0 && m.Op == plan.GLU && m.In[1] == n.Out && !late(m.Attr.(plan.GLUAttr))
	}
	return false
}

func (elementwise) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	v := s.Node().In[len(s.Node().In)-1]
	x, out := c.forms(v), c.forms(s.Out())
	a := chainArgs{x: x.F32, stride: x.Stride, cols: x.Cols, count: c.count(s.Out()), out: out}
	for _, m := range slices.Concat(s.Nodes, s.Then) {
		a.links[a.length] = c.link(m, v, out.Cols)
		a.length++
		v = m.Out
	}
	l, err := c.byColumns("elementwise", "chain", c.rows(s.Out()), device.Arguments(&a), out.Stride, nil)
	return []Launch{l}, err
}

// link returns an operation on v, whose result has so many columns.
func (c *Compiler) link(m *plan.Node, v plan.Value, cols int32) (l linkArgs) {
	input, two := fuse.Operand(m, v)
	if two {
		f := c.forms(m.In[input])
		l.x, l.stride, l.each = f.F32, f.Stride, cols/f.Cols
	}
	switch m.Op {
	case plan.Map:
		l.kind, l.function = linkMap, functionOf(m)
	case plan.Add:
		l.kind = linkAdd
	case plan.GLU:
		if l.kind = linkGate; input == 0 {
			l.kind = linkGated
		}
		l.setUnit(m.Attr.(plan.GLUAttr))
	}
	return l
}
