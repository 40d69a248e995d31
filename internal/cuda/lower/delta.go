package lower

import (
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// delta implements [plan.Delta].
type delta struct{ ordinary }

// manyColumnsKeyDim is the longest key with which a block keeps many columns of a matrix.
const manyColumnsKeyDim = 128

func (delta) writes(s *fuse.Stage) bool { return s.Node().Attr.(plan.DeltaAttr).ValueDim%32 == 0 }

// scratch returns the sizes of normalized queries, betas and gates.
func (delta) scratch(_ *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	a := n.Attr.(plan.DeltaAttr)
	return []int{4 * lim.Tokens * a.KeyHeads * a.KeyDim, 4 * lim.Tokens * a.Heads, 4 * lim.Tokens * a.Heads * a.Gates()}
}

type deltaArgs struct {
	q, k, v, beta, gate                               driver.DevicePtr
	qStride, kStride, vStride, betaStride, gateStride int32
	keyHeads, heads, keyDim, valueDim, tiled, gates   int32
	most, floor, by                                   float32
	_                                                 int32
	rate, bias, queries, betas, steps                 driver.DevicePtr
	state                                             SlotArgs
	rows                                              rowsPoolArgs
	table                                             tableArgs
	sequence, starts, seqs, count                     driver.DevicePtr
	out                                               device.Forms
}

func (delta) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr, room := n.Attr.(plan.DeltaAttr), c.scratch(n)
	q, k, v, beta, gate := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.In[2]), c.forms(n.In[3]), c.forms(n.In[4])
	a := deltaArgs{
		q: q.F32, k: k.F32, v: v.F32, beta: beta.F32, gate: gate.F32,
		qStride: q.Stride, kStride: k.Stride, vStride: v.Stride, betaStride: beta.Stride, gateStride: gate.Stride,
		keyHeads: int32(attr.KeyHeads), heads: int32(attr.Heads), keyDim: int32(attr.KeyDim), valueDim: int32(attr.ValueDim), gates: int32(attr.Gates()),
		most: float32(attr.Beta), floor: float32(attr.Floor), by: float32(1 / math.Sqrt(float64(attr.KeyDim))),
		rate: c.weight(n.Weight), bias: c.weight(n.Bias), queries: room[0], betas: room[1], steps: room[2], state: c.Slots(n.State),
		sequence: c.Step.sequence, starts: c.Step.starts, seqs: c.Step.counts + countSeqs, count: c.Step.counts + countTokens, out: c.forms(n.Out),
	}
	if attr.Tiled {
		a.tiled = 1
	}
	a.rows, a.table = c.rowsPool(attr.Rows)
	args := device.Arguments(&a)
	tokens := func(x int) func(sh *Shape) driver.Dim3 {
		return func(sh *Shape) driver.Dim3 { return driver.Dim3{X: x, Y: sh.Tokens} }
	}
	all := attr.Heads * attr.Gates()
	prepare, err := c.launch("delta", "prepare", plan.Tokens, args, 128, tokens((attr.KeyHeads+3)/4))
	if err != nil {
		return nil, err
	}
	gates, err := c.launch("delta", "gates", plan.Tokens, args, 256, tokens((all+255)/256))
	if err != nil {
		return nil, err
	}
	sums, err := c.launch("delta", "sums", plan.Tokens, args, 256, tokens((all+255)/256))
	if err != nil {
		return nil, err
	}
	name, columns := "delta_64", manyColumns
	if attr.KeyDim > manyColumnsKeyDim || attr.ValueDim <= fewColumns {
		name, columns = "delta_32", fewColumns
	}
	rule, err := c.launchShared("delta", name, plan.Tokens, args, 256, 4*attr.KeyDim*columns, 0, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (attr.ValueDim + columns - 1) / columns, Y: attr.Heads, Z: c.seqs(sh)}
	})
	keys := attr.KeyHeads * attr.KeyDim
	prepare.Moves = func(b *plan.Batch) int { return len(b.Tokens) * 4 * 4 * keys }
	gates.Moves = func(b *plan.Batch) int { return len(b.Tokens) * 4 * 2 * (all + attr.Heads) }
	sums.Moves = func(b *plan.Batch) int { return len(b.Tokens) * 4 * 2 * all }
	_, rows := attr.States()
	moved, row := recurrentMoves(c.Layout.p.States[n.State].Size, rows.Width()), 4*keys+c.read(n.In[2], inFloats)+c.written(n.Out)
	rule.Moves = func(b *plan.Batch) int { return moved(b) + len(b.Tokens)*row }
	return []Launch{prepare, gates, sums, rule}, err
}
