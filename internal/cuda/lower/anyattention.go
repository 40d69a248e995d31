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
	return a.Latent || a.Values() != a.HeadDim || a.Chunk > 0 || len(n.In) == 1 || a.HeadDim > maxHeadDim
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
func anyScratch(a *plan.AttentionAttr, lim *plan.Limits) []int {
	return []int{4 * anyGroups(a) * anyHeads(a) * (a.Values() + 2) * anyPartials, 4 * anyGroups(a) * Power(lim.Tokens)}
}

type anyPoolArgs struct {
	base                                  driver.DevicePtr
	apart                                 int64
	pageTokens, kvHeads, keyDim, valueDim int32
}

func (c *Compiler) anyPool(i int) anyPoolArgs {
	k := &c.Pools[i]
	return anyPoolArgs{
		base: k.Base, apart: int64(k.Apart), pageTokens: int32(c.Layout.lim.PageTokens), kvHeads: int32(k.State.KVHeads),
		keyDim: int32(k.State.HeadDim), valueDim: int32(k.State.ValueDim),
	}
}

type storeArgs struct {
	k, v                            driver.DevicePtr
	kStride, vStride, latent, layer int32
	pool                            anyPoolArgs
	table                           tableArgs
	sequence, overflow, count       driver.DevicePtr
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
	group := c.Layout.p.States[n.State].Group
	pool, table := c.anyPool(n.State), tableArgs{pages: c.Step.pages[group], places: c.Step.places[group]}
	kept := c.Pools[n.State].Bytes / c.Layout.lim.PageTokens // bytes of one position
	family := "anyattention_" + cacheNames[c.Layout.lim.Cache]
	if len(n.In) > 1 {
		more, err := c.turnInPlace(&s.K, attr.KVHeads, attr.HeadDim)
		if err != nil {
			return nil, err
		}
		k, v := c.forms(s.K.In), c.forms(n.In[2])
		a := storeArgs{
			k: k.F32, v: v.F32, kStride: k.Stride, vStride: v.Stride, layer: int32(max(n.Layer, 0)), pool: pool, table: table,
			sequence: c.Step.sequence, overflow: c.Step.overflow, count: c.Step.counts + countTokens,
		}
		if attr.Latent {
			a.latent = int32(attr.ValueDim)
		}
		st := &c.Layout.p.States[n.State]
		units := st.KVHeads * ((st.HeadDim+31)/32 + (st.ValueDim+31)/32)
		l, err := c.launch(family, "store", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: (units + 3) / 4, Y: sh.Tokens} })
		if err != nil {
			return nil, err
		}
		read := c.read(s.K.In, inFloats) + c.read(n.In[2], inFloats)
		l.Moves = func(b *plan.Batch) int { return len(b.Tokens) * (read + kept) }
		all = append(append(all, more...), l)
	}
	room, q, out := c.scratch(n), c.forms(s.Q.In), c.forms(n.Out)
	a := anyAttentionArgs{
		q: q.F32, stride: q.Stride, heads: int32(attr.Heads), values: int32(attr.Values()), scale: float32(attr.Scale), softcap: float32(attr.Softcap),
		window: int32(attr.Window), chunk: int32(attr.Chunk), sinks: c.weight(n.Weight), pool: pool, table: table, count: c.Step.counts + countTokens,
		out: out, partial: room[0], tickets: room[1],
	}
	if attr.Latent {
		a.latent = 1
	}
	name, groups, seen := fmt.Sprintf("attend_%d", anyHeads(&attr)), anyGroups(&attr), max(attr.Window, attr.Chunk)
	f, err := c.Kernel(family, name)
	if err != nil {
		return nil, err
	}
	moved := c.read(s.Q.In, inFloats) + c.written(n.Out)
	return append(all, Launch{
		Name: family + " " + name, rows: plan.Tokens,
		Moves: func(b *plan.Batch) int { return len(b.Tokens)*moved + b.Attended(attr.Group())*kept },
		begin: func(st *driver.Stream, sh *Shape) error {
			grid := driver.Dim3{X: 1, Y: groups, Z: sh.Tokens}
			a.split, a.maxSegments = 0, 0
			if segments := windowSegments(sh, seen); sh.Tokens*segments <= anyPartials {
				a.split, a.maxSegments, grid.X = 1, int32(segments), segments
			}
			return f.Launch(st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}, Programmatic: c.Early}, device.Arguments(&a))
		},
	}), nil
}
