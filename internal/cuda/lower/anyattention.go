package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// The maximum lengths of keys and values of the kernels in kernels/anyattention.cuh.
const (
	anyKeyDim   = 640
	anyValueDim = 512
)

// anyPartials is splitPartials for these kernels, whose heads are longer.
const anyPartials = 512

// anyForm reports whether n needs the kernels for all forms of attention.
func anyForm(n *plan.Node) bool {
	a := n.Attr.(plan.AttentionAttr)
	return a.Latent || a.Values() != a.HeadDim || a.Chunk > 0 || a.First > 0 || len(n.In) == 1 || a.HeadDim > maxHeadDim
}

// anyHeads returns how many query heads a block serves.
func anyHeads(a *plan.AttentionAttr) int {
	switch share := a.Heads / a.KVHeads; {
	case share == 1:
		return 1
	case share <= 4:
		return 4
	}
	return 8
}

// anyGroups returns the number of blocks that serve a token's heads.
func anyGroups(a *plan.AttentionAttr) int {
	heads := anyHeads(a)
	return a.KVHeads * ((a.Heads/a.KVHeads + heads - 1) / heads)
}

// anyScratch returns the sizes of the segments that blocks share, and of their tickets.
func anyScratch(n *plan.Node, lim *plan.Limits) []int {
	a := n.Attr.(plan.AttentionAttr)
	if latentForm(n, lim) {
		return []int{4 * latentGroups(&a) * latentHeads * (a.Values() + 2) * latentPartials(&a)}
	}
	return []int{4 * anyGroups(&a) * anyHeads(&a) * (a.Values() + 2) * anyPartials, 4 * anyGroups(&a) * Power(lim.Tokens)}
}

type anyAttentionArgs struct {
	q                             driver.DevicePtr
	stride, heads, values, latent int32
	scale, softcap                float32
	window, chunk                 int32
	sinks                         driver.DevicePtr
	pool                          anyPoolArgs
	table                         tableArgs
	count                         driver.DevicePtr
	out                           device.Forms
	partial, tickets              driver.DevicePtr
	split, maxSegments            int32
	far                           anyPoolArgs
	farTable                      tableArgs
	chosen                        driver.DevicePtr
	chosenStride, top             int32
	listed, alone, unseen, _      int32
}

// listedRows returns how many rows are listed for a token of a step of shape sh, at most.
func listedRows(a *plan.AttentionAttr, sh *Shape) int {
	rows := 0
	if a.Rate > 0 || a.Top > 0 {
		rows = sh.segments * contextSegment / max(1, a.Rate)
	}
	if a.Top > 0 {
		rows = min(rows, a.Top)
	}
	return rows
}

// anySegments returns the maximum number of segments that a token attends to.
func anySegments(a *plan.AttentionAttr, sh *Shape) int {
	segments := (listedRows(a, sh) + contextSegment - 1) / contextSegment
	if a.Top == 0 || a.Rate > 0 {
		segments += windowSegments(sh, max(a.Window, a.Chunk), 1)
	}
	return segments
}

// anyAttended returns how many rows the tokens of b attend to, each sequence's counted once where its
// tokens see the same ones.
func anyAttended(a *plan.AttentionAttr, b *plan.Batch) int {
	n := 0
	if a.Top == 0 || a.Rate > 0 {
		n = b.Attended(a.Group())
	}
	if a.Rate > 0 || a.Top > 0 {
		rows := b.Attended(plan.Group{Kind: plan.PerToken}) / max(1, a.Rate)
		if a.Top > 0 {
			rows = min(rows, a.Top*len(b.Tokens))
		}
		n += rows
	}
	return n
}

// turnInPlace returns the launch that normalizes and rotates heads where they are, or nil.
func (c *Compiler) turnInPlace(h *fuse.Head, heads, headDim int) ([]Launch, error) {
	if h.Rope == nil {
		return nil, nil
	}
	x := c.forms(h.In)
	t := turnArgs{q: x.F32, qStride: x.Stride, heads: int32(heads), headDim: int32(headDim), qOut: x.F32, qOutStride: x.Stride}
	t.qAngles, t.qDims, t.qInterleaved = c.turned(h.Rope)
	if m := h.Norm; m != nil {
		t.qNorm, t.qEps = c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	}
	l, err := c.turn(&t)
	l.Moves = func(b *plan.Batch) int { return 2 * len(b.Tokens) * c.read(h.In, inFloats) }
	return []Launch{l}, err
}

// attendAny returns the launches of a node that needs the kernels for all forms.
func (c *Compiler) attendAny(s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.AttentionAttr)
	all, err := c.turnInPlace(&s.Q, attr.Heads, attr.HeadDim)
	if err != nil {
		return nil, err
	}
	pool, table := c.anyPool(n.State), c.pageTable(n.State)
	kept := c.Layout.p.States[n.State].RowBytes(c.Layout.lim.Cache)
	family := "anyattention_" + cacheNames[c.Layout.lim.Cache]
	if len(n.In) > 1 {
		more, err := c.turnInPlace(&s.K, attr.KVHeads, attr.HeadDim)
		if err != nil {
			return nil, err
		}
		v := &s.V
		if attr.Latent && attr.Values() == attr.HeadDim {
			v = nil
		}
		l, err := c.storeRows(n, n.State, s.K, v)
		if err != nil {
			return nil, err
		}
		all = append(append(all, more...), l)
	}
	if attr.Rate > 0 {
		l, err := c.storeRows(n, attr.Compressed, fuse.Head{In: n.In[2]}, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	room, q, out := c.scratch(n), c.forms(s.Q.In), c.forms(n.Out)
	a := anyAttentionArgs{
		q: q.F32, stride: q.Stride, heads: int32(attr.Heads), values: int32(attr.Values()), scale: float32(attr.Scale), softcap: float32(attr.Softcap),
		window: int32(attr.Window), chunk: int32(attr.Chunk), unseen: int32(attr.First), sinks: c.weight(n.Weight), pool: pool, table: table, count: c.Step.counts + countTokens,
		out: out, partial: room[0],
	}
	if attr.Latent {
		a.latent = 1
	}
	if latentForm(n, c.Layout.lim) {
		l, err := c.attendLatent(s, a)
		return append(all, l...), err
	}
	a.tickets = room[1]
	switch a.far, a.farTable = pool, table; {
	case attr.Rate > 0:
		a.listed, a.far, a.farTable = 1, c.anyPool(attr.Compressed), c.pageTable(attr.Compressed)
	case attr.Top > 0:
		a.listed, a.alone = 1, 1
	}
	if attr.Top > 0 {
		chosen := c.forms(n.Chosen())
		a.chosen, a.chosenStride, a.top = chosen.F32, chosen.Stride, int32(attr.Top)
	}
	name, groups := fmt.Sprintf("attend_%d", anyHeads(&attr)), anyGroups(&attr)
	f, err := c.Kernel(family, name)
	if err != nil {
		return nil, err
	}
	moved := c.read(s.Q.In, inFloats) + c.written(n.Out)
	return append(all, Launch{
		Name: family + " " + name, rows: plan.Tokens,
		Moves: func(b *plan.Batch) int { return len(b.Tokens)*moved + anyAttended(&attr, b)*kept },
		begin: func(st *driver.Stream, sh *Shape) error {
			grid := driver.Dim3{X: 1, Y: groups, Z: sh.Tokens}
			a.split, a.maxSegments = 0, 0
			if segments := anySegments(&attr, sh); sh.Tokens*segments <= anyPartials {
				a.split, a.maxSegments, grid.X = 1, int32(segments), segments
			}
			return c.queue(f, st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}}, device.Arguments(&a))
		},
	}), nil
}
