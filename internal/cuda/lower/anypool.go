package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// anyPoolArgs are the pages of a state whose values may have another length than keys; see
// kernels/anypool.cuh.
type anyPoolArgs struct {
	base                      driver.DevicePtr
	apart                     int64
	pageTokens, every, rows   int32
	kvHeads, keyDim, valueDim int32
}

func (c *Compiler) anyPool(i int) anyPoolArgs {
	k, tokens := &c.Pools[i], c.Layout.lim.PageTokens
	return anyPoolArgs{
		base: k.Base, apart: int64(k.Apart), pageTokens: int32(tokens), every: int32(max(1, k.State.Every)), rows: int32(k.State.Rows(tokens)),
		kvHeads: int32(k.State.KVHeads), keyDim: int32(k.State.HeadDim), valueDim: int32(k.State.ValueDim),
	}
}

type storeArgs struct {
	k, v                            driver.DevicePtr
	kStride, vStride, latent, layer int32
	pool                            anyPoolArgs
	table                           tableArgs
	sequence, overflow, count, norm driver.DevicePtr
	by                              rotationArgs
	eps                             float32
	_                               int32
}

// storeRows returns the launch that stores k in a state of node n, with the values in v, or if the state
// has keys alone, with the rest of these. v is nil if the state has nothing else than k.
func (c *Compiler) storeRows(n *plan.Node, state int, k fuse.Head, v *fuse.Head) (Launch, error) {
	st, lim, from := &c.Layout.p.States[state], c.Layout.lim, c.forms(k.In)
	a := storeArgs{
		k: from.F32, kStride: from.Stride, layer: int32(max(n.Layer, 0)), pool: c.anyPool(state), table: c.pageTable(state),
		sequence: c.Step.sequence, overflow: c.Step.overflow, count: c.Step.counts + countTokens,
	}
	if m := k.Norm; m != nil {
		a.norm, a.eps = c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	}
	if st.ValueDim == 0 {
		a.latent = from.Cols / int32(st.KVHeads)
	}
	read := c.read(k.In, inFloats)
	if v != nil {
		more := c.forms(v.In)
		a.v, a.vStride, a.by, read = more.F32, more.Stride, c.rotation(v.Rope), read+c.read(v.In, inFloats)
	}
	family := "anyattention_" + cacheNames[st.Format(lim.Cache)]
	units, moved := st.KVHeads*((st.HeadDim+31)/32+(st.ValueDim+31)/32), read+st.RowBytes(lim.Cache)
	l, err := c.launch(family, "store", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (units + 3) / 4, Y: sh.Tokens}
	})
	l.Moves = func(b *plan.Batch) int { return len(b.Tokens) * moved / max(1, st.Every) }
	return l, err
}
