package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// embed implements [plan.Embed]. The ids that the previous step sampled are on the device.
type embed struct{ ordinary }

func (embed) writes(*fuse.Stage) bool { return false }

func (embed) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	if a, ok := s.Node().Attr.(plan.EmbedAttr); ok {
		return c.lookUpPart(s.Node(), a)
	}
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
	t := c.Weights.Matrices[n.Weight]
	c.table(n, &a)
	return c.one(weights.Family(t.Format), "embed", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (t.ColTiles + 3) / 4, Y: sh.Tokens}
	})
}

// table sets the table and the output of a.
func (c *Compiler) table(n *plan.Node, a *embedArgs) {
	f, t := c.forms(n.Out), c.Weights.Matrices[n.Weight]
	a.powers = c.powers(n.Weight)
	a.w, a.count, a.y, a.stride, a.cols, a.colTiles = c.weight(n.Weight), c.count(n.Out), f.F32, f.Stride, f.Cols, int32(t.ColTiles)
}

type embedPartArgs struct {
	embed       embedArgs
	first, rows int32
}

// lookUpPart copies parts of rows to n's output. The embedding of all tokens comes first in a
// program, so their ids are known. A program with inputs may lack it, but then knows its tokens.
func (c *Compiler) lookUpPart(n *plan.Node, attr plan.EmbedAttr) ([]Launch, error) {
	t := c.Weights.Matrices[n.Weight]
	a := embedPartArgs{embed: embedArgs{tokens: c.Step.ids}, first: int32(attr.First), rows: int32(t.Rows)}
	if c.Layout.p.Inputs > 0 {
		a.embed.tokens = c.Step.tokens
	}
	c.table(n, &a.embed)
	cols, _ := weights.TileOf(t.Format)
	tiles := (attr.First+attr.Columns-1)/cols - attr.First/cols + 1
	ls, err := c.one(weights.Family(t.Format), "embedPart", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (tiles + 3) / 4, Y: sh.Tokens}
	})
	if err == nil {
		ls[0].Moves = func(b *plan.Batch) int { return len(b.Tokens) * (t.RowBytes()*attr.Columns/t.Cols + c.written(n.Out)) }
	}
	return ls, err
}
