package lower

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// spread implements [plan.Spread].
type spread struct{ ordinary }

type spreadColumnsArgs struct {
	x, from      driver.DevicePtr
	stride, cols int32
	count        driver.DevicePtr
	out          device.Forms
}

func (spread) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, out := c.forms(n.In[0]), c.forms(n.Out)
	i := slices.IndexFunc(c.Room.Spreads, func(d Spread) bool { return d.node == n })
	a := spreadColumnsArgs{x: x.F32, from: c.ScratchAt + driver.DevicePtr(c.Room.Spreads[i].At), stride: x.Stride, cols: out.Cols, count: c.count(n.Out), out: out}
	return c.one("rowwise", "spread", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}

// A Spread is the place in a [Room] for the columns of a node of [plan.Spread].
type Spread struct {
	node *plan.Node
	At   int // [Cols] int32
}

// Columns returns, for each column of the result, the column of the input that it has, or -1.
func (s Spread) Columns() []int32 {
	a := s.node.Attr.(plan.SpreadAttr)
	from := slices.Repeat([]int32{-1}, a.Cols)
	for i, id := range a.IDs {
		from[id] = int32(i)
	}
	return from
}
