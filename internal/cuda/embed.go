package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// embed is [plan.Embed]: the ids that the step before has sampled are on the device.
type embed struct{ ordinary }

func (embed) writes(*fuse.Stage) bool { return false }

func (embed) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	return c.lookUp(s.Node(), embedArgs{
		tokens: c.step.tokens, from: c.step.from, sampled: c.step.sampled, ids: c.step.ids, failed: c.step.failed, sequence: c.step.sequence,
	})
}

type embedArgs struct {
	w, tokens, from, sampled, ids, failed, sequence, count, y driver.DevicePtr

	stride, cols, colTiles, _ int32
}

// lookUp takes rows of a table by what a tells.
func (c *compiler) lookUp(n *plan.Node, a embedArgs) ([]launch, error) {
	f, t := c.forms(n.Out), c.weights.matrices[n.Weight]
	a.w, a.count, a.y, a.stride, a.cols, a.colTiles = c.weight(n.Weight), c.count(n.Out), f.f32, f.stride, f.cols, int32(t.colTiles)
	return c.one(family(t.format), "embed", plan.Tokens, arguments(&a), 128, func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: (t.colTiles + 3) / 4, Y: sh.tokens}
	})
}
