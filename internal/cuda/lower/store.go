package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// store implements [plan.Store].
type store struct{ ordinary }

func (store) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	var v *fuse.Head
	if len(n.In) > 1 {
		v = &fuse.Head{In: n.In[1]}
	}
	l, err := c.storeRows(n, n.State, fuse.Head{In: n.In[0]}, v)
	return []Launch{l}, err
}

// recall implements [plan.Recall].
type recall struct{ ordinary }

type recallArgs struct {
	pool  anyPoolArgs
	table tableArgs
	count driver.DevicePtr
	out   device.Forms
}

func (recall) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	out := c.forms(n.Out)
	a := recallArgs{pool: c.anyPool(n.State), table: c.pageTable(n.State), count: c.count(n.Out), out: out}
	ls, err := c.one("recall", "recall", plan.Tokens, device.Arguments(&a), 256, elementGrid(plan.Tokens, out.Stride))
	if err == nil {
		row := 4*int(out.Cols) + c.written(n.Out)
		ls[0].Moves = func(b *plan.Batch) int { return len(b.Tokens) * row }
	}
	return ls, err
}
