package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// pick is [plan.Pick] of rows that no norm's stage picks.
type pick struct{ ordinary }

type meanArgs struct {
	x                             driver.DevicePtr
	stride, cols                  int32
	rows, sequence, starts, count driver.DevicePtr
	out                           forms
}

func (pick) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	n := s.Node()
	in, out := c.forms(n.In[0]), c.forms(n.Out)
	if n.Attr.(plan.PickAttr).Mean {
		a := meanArgs{x: in.f32, stride: in.stride, cols: in.cols, rows: c.step.rows, sequence: c.step.sequence, starts: c.step.starts, count: c.count(n.Out), out: out}
		return c.one("elementwise", "mean", plan.Rows, arguments(&a), 256, elementGrid(plan.Rows, out.stride))
	}
	a := convertArgs{x: in.f32, stride: in.stride, cols: in.cols, at: c.step.rows, count: c.count(n.Out), out: out}
	ls, err := c.one("elementwise", "convert", plan.Rows, arguments(&a), 256, elementGrid(plan.Rows, out.stride))
	if err == nil {
		ls[0].moves = func(b *plan.Batch) int { return len(b.Rows) * (c.read(n.In[0], inFloats) + c.written(n.Out)) }
	}
	return ls, err
}
