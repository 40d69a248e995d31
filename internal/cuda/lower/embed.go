package lower

import (
	"errors"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// embed implements [plan.Embed]. The ids that the previous step sampled are on the device.
type embed struct{ ordinary }

func (embed) writes(*fuse.Stage) bool { return false }

func (embed) check(n *plan.Node) error {
	if n.Attr != nil {
		return errors.New("no kernel for a part of a table's rows")
	}
	return nil
}

func (embed) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	return c.lookUp(s.Node(), embedArgs{
		tokens: c.Step.tokens, from: c.Step.from, sampled: c.Step.sampled, ids: c.Step.ids, failed: c.Step.failed, sequence: c.Step.sequence,
	})
}

type embedArgs struct {
	w, powers, tokens, from, sampled, ids, failed, sequence, count, y driver.DevicePtr

	stride, cols, colTiles, _ int32
}

// lookUp copies rows of a table to n's output. a holds the source of the row numbers.
func (c *Compiler) lookUp(n *plan.Node, a embedArgs) ([]Launch, error) {
	f, t := c.forms(n.Out), c.Weights.Matrices[n.Weight]
	a.powers = c.powers(n.Weight)
	a.w, a.count, a.y, a.stride, a.cols, a.colTiles = c.weight(n.Weight), c.count(n.Out), f.F32, f.Stride, f.Cols, int32(t.ColTiles)
	return c.one(weights.Family(t.Format), "embed", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (t.ColTiles + 3) / 4, Y: sh.Tokens}
	})
}
