package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// pick implements [plan.Pick] for rows that no norm's stage picks.
type pick struct{ ordinary }

type meanArgs struct {
	x                             driver.DevicePtr
	stride, cols                  int32
	rows, sequence, starts, count driver.DevicePtr
	out                           device.Forms
}

func (pick) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	in, out := c.forms(n.In[0]), c.forms(n.Out)
	if n.Attr.(plan.PickAttr).Mean {
		a := meanArgs{x: in.F32, stride: in.Stride, cols: in.Cols, rows: c.Step.rows, sequence: c.Step.sequence, starts: c.Step.starts, count: c.count(n.Out), out: out}
		return c.one("elementwise", "mean", plan.Rows, device.Arguments(&a), 256, elementGrid(plan.Rows, out.Stride))
	}
	a := convertArgs{x: in.F32, stride: in.Stride, cols: in.Cols, at: c.Step.rows, count: c.count(n.Out), out: out}
	ls, err := c.one("elementwise", "convert", plan.Rows, device.Arguments(&a), 256, elementGrid(plan.Rows, out.Stride))
	if err == nil {
		ls[0].Moves = func(b *plan.Batch) int { return len(b.Rows) * (c.read(n.In[0], inFloats) + c.written(n.Out)) }
	}
	return ls, err
}
