package lower

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// delta implements [plan.Delta].
type delta struct{ ordinary }

// What kernels/delta.cu fixes.
const (
	deltaColumns  = 32 // of a block
	deltaPairRows = 16 // rows of a block of pairs, if a step has several of a sequence
	deltaFewRows  = 8  // the most rows of a sequence with few
	deltaBand     = 16 // rows of a warp of many
)

// deltaPart returns how many numbers a part of a key has.
func deltaPart(keyDim int) int { return (keyDim + 15) / 16 * 4 }

// deltaShared returns the bytes of shared memory of many, with ManyShared's fields.
func deltaShared(keyDim int) int {
	each, parts, pairs := deltaPart(keyDim), 2, 0
	if keyDim > 128 {
		parts = 1
	}
	for row := range plan.RecurrentChunk {
		pairs += (row/deltaBand+1)*deltaBand + 4
	}
	return 4 * (4*each*deltaColumns + 2*plan.RecurrentChunk*(parts*each+4) + plan.RecurrentChunk*deltaColumns + 2*pairs)
}

func (delta) writes(s *fuse.Stage) bool { return s.Node().Attr.(plan.DeltaAttr).ValueDim%32 == 0 }

// deltaPairKeys returns the number of keys with gates of their own.
func deltaPairKeys(a *plan.DeltaAttr) int {
	if a.ByChannel {
		return a.Heads
	}
	return a.KeyHeads
}

// deltaMany returns the kernel for sequences with many rows: by the longest key, and for gates by
// head or by channel.
func deltaMany(a *plan.DeltaAttr) string {
	name, longest := "many", 128
	if a.ByChannel {
		name = "channels"
	}
	if a.KeyDim > longest {
		longest = 256
	}
	return fmt.Sprintf("%s_%d", name, longest)
}

// scratch returns the sizes of normalized queries, betas and products of rows.
func (delta) scratch(_ *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	a := n.Attr.(plan.DeltaAttr)
	return []int{4 * lim.Tokens * a.KeyHeads * a.KeyDim, 4 * lim.Tokens * a.Heads, 4 * lim.Tokens * deltaPairKeys(&a) * 2 * plan.RecurrentChunk}
}

type deltaArgs struct {
	q, k, v, beta, gate                               driver.DevicePtr
	qStride, kStride, vStride, betaStride, gateStride int32
	keyHeads, heads, keyDim, valueDim, tiled, gates   int32
	most, floor, by                                   float32
	_                                                 int32
	rate, bias, queries, betas, pairs                 driver.DevicePtr
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
		rate: c.weight(n.Weight), bias: c.weight(n.Bias), queries: room[0], betas: room[1], pairs: room[2], state: c.Slots(n.State),
		sequence: c.Step.sequence, starts: c.Step.starts, seqs: c.Step.counts + countSeqs, count: c.Step.counts + countTokens, out: c.forms(n.Out),
	}
	if attr.Tiled {
		a.tiled = 1
	}
	a.rows, a.table = c.rowsPool(attr.Rows)
	args := device.Arguments(&a)
	all, pairKeys := attr.Heads*attr.Gates(), deltaPairKeys(&attr)
	prepare, err := c.launch("delta", "prepare", plan.Tokens, args, 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (attr.KeyHeads+7)/8 + (all+255)/256, Y: sh.Tokens}
	})
	if err != nil {
		return nil, err
	}
	pairs, err := c.deltaByRows(args, 256, 0, "pairs_1", "pairs_16", func(sh *Shape) driver.Dim3 {
		if sh.each == 1 {
			return driver.Dim3{X: sh.Tokens, Y: pairKeys}
		}
		return driver.Dim3{X: (sh.Tokens + deltaPairRows - 1) / deltaPairRows, Y: pairKeys}
	})
	if err != nil {
		return nil, err
	}
	chunks, err := c.launch("delta", "pairs_64", plan.Tokens, args, 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (sh.Tokens + plan.RecurrentChunk - 1) / plan.RecurrentChunk, Y: pairKeys}
	})
	if err != nil {
		return nil, err
	}
	blocks := driver.Dim3{X: (attr.ValueDim + deltaColumns - 1) / deltaColumns, Y: attr.Heads}
	few, err := c.deltaByRows(args, 128, 16*deltaPart(attr.KeyDim)*deltaColumns, "few_1", "few_4", func(sh *Shape) driver.Dim3 {
		grid := blocks
		if grid.Z = c.seqs(sh); sh.each > 0 {
			grid.Z = min(grid.Z, sh.seqs)
		}
		return grid
	})
	if err != nil {
		return nil, err
	}
	many, err := c.launchShared("delta", deltaMany(&attr), plan.Tokens, args, 256, deltaShared(attr.KeyDim), 0, func(sh *Shape) driver.Dim3 {
		grid := blocks
		grid.Z = c.seqs(sh)
		return grid
	})
	if err != nil {
		return nil, err
	}
	some := func(sh *Shape) bool { return sh.each > 0 } // each sequence has few rows
	many, chunks = many.unless(some), chunks.unless(some)
	keys := attr.KeyHeads * attr.KeyDim
	pairBytes := 4 * (2*keys + pairKeys*2*plan.RecurrentChunk) // of a token
	prepare.Moves = func(b *plan.Batch) int { return len(b.Tokens) * 4 * (4*keys + 2*(all+attr.Heads)) }
	pairs.Moves = func(b *plan.Batch) int {
		n := 0
		for s := range b.Seqs() {
			if rows := int(b.Start[s+1] - b.Start[s]); attr.ByChannel || rows <= deltaFewRows {
				n += rows
			}
		}
		return n * pairBytes
	}
	chunks.Moves = func(b *plan.Batch) int { return len(b.Tokens)*pairBytes - pairs.Moves(b) }
	_, rows := attr.States()
	row := 4*keys + c.read(n.In[2], inFloats) + c.written(n.Out)
	moved := func(least, most int) func(b *plan.Batch) int {
		return recurrentMoves(c.Layout.p.States[n.State].Size, rows.Width(), row, least, most)
	}
	few.Moves, many.Moves = moved(1, deltaFewRows), moved(deltaFewRows+1, math.MaxInt)
	if attr.ByChannel {
		return []Launch{prepare, pairs, few, many}, nil
	}
	return []Launch{prepare, pairs, chunks, few, many}, nil
}

// deltaByRows returns a launch of the kernel one in steps with one token of each sequence, and
// otherwise of several.
func (c *Compiler) deltaByRows(args *driver.Args, threads, shared int, one, several string, grid func(sh *Shape) driver.Dim3) (Launch, error) {
	var by []Launch
	for _, name := range []string{several, one} {
		l, err := c.launchShared("delta", name, plan.Tokens, args, threads, shared, 0, grid)
		if err != nil {
			return Launch{}, err
		}
		by = append(by, l)
	}
	return oneOf(by[0].Name, by, func(sh *Shape) int {
		if sh.each == 1 {
			return 1
		}
		return 0
	}), nil
}
