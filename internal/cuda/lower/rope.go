package lower

import (
	"reflect"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// rope implements [plan.Rope] for heads that no attention's stage rotates.
type rope struct{ ordinary }

func (rope) writes(s *fuse.Stage) bool { return anyRotation(s.Node()) }

// anyRotation reports whether n needs the kernel for all rotations.
func anyRotation(n *plan.Node) bool {
	r := n.Attr.(plan.RopeAttr)
	return r.First > 0 || r.HeadDim > maxHeadDim
}

type anglesArgs struct {
	freqs, set, positions, count, out driver.DevicePtr
	pairs                             int32
	scale                             float32
	shift, _                          int32
}

// ropes returns the distinct ropes of a program.
func ropes(p *plan.Program) []plan.RopeAttr {
	var all []plan.RopeAttr
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Rope && ropeIndex(all, n) < 0 {
			all = append(all, n.Attr.(plan.RopeAttr))
		}
	}
	return all
}

func ropeIndex(all []plan.RopeAttr, n *plan.Node) int {
	a := n.Attr.(plan.RopeAttr)
	for i := range all {
		// The angles depend neither on the head dimension nor on which elements are rotated.
		b := all[i]
		b.HeadDim, b.Interleaved, b.First = a.HeadDim, a.Interleaved, a.First
		if reflect.DeepEqual(a, b) {
			return i
		}
	}
	return -1
}

// angles returns the launches that compute the angles of every rope, for all layers.
func (c *Compiler) angles() ([]Launch, error) {
	var all []Launch
	for i, r := range c.Room.Ropes {
		a := anglesArgs{
			freqs: c.ScratchAt + driver.DevicePtr(c.Room.Freqs[i]), set: c.Step.sets[i], positions: c.Step.positions, count: c.Step.counts + countTokens,
			out: c.ScratchAt + driver.DevicePtr(c.Room.angles[i]), pairs: int32(r.Dims / 2), scale: float32(r.Scale), shift: int32(r.Shift),
		}
		l, err := c.launch("rope", "angles", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: sh.Tokens} })
		if err != nil {
			return nil, err
		}
		l.where, l.Moves = "rotary angles", func(b *plan.Batch) int { return len(b.Tokens) * 8 * (r.Dims / 2) }
		all = append(all, l)
	}
	return all, nil
}

type turnArgs struct {
	q, k, v                                            driver.DevicePtr
	qStride, kStride, vStride, heads, kvHeads, headDim int32
	qNorm, kNorm                                       driver.DevicePtr
	qEps, kEps                                         float32
	qAngles, kAngles                                   driver.DevicePtr
	qDims, kDims, qInterleaved, kInterleaved           int32
	qOut                                               driver.DevicePtr
	qOutStride, _                                      int32
	pool                                               poolArgs
	table                                              tableArgs
	sequence, overflow                                 driver.DevicePtr
	layer, _                                           int32
	count                                              driver.DevicePtr
}

// turned returns the location of a rope's angles, its dimensions, and whether pairs are
// interleaved.
func (c *Compiler) turned(n *plan.Node) (angles driver.DevicePtr, dims, interleaved int32) {
	if n == nil {
		return 0, 0, 0
	}
	r := n.Attr.(plan.RopeAttr)
	if r.Interleaved {
		interleaved = 1
	}
	return c.ScratchAt + driver.DevicePtr(c.Room.angles[ropeIndex(c.Room.Ropes, n)]), int32(r.Dims), interleaved
}

func (c *Compiler) turn(a *turnArgs) (Launch, error) {
	a.sequence, a.overflow, a.count = c.Step.sequence, c.Step.overflow, c.Step.counts+countTokens
	const headsOfWarp, turnWarps = 4, 4 // see kernels/rope.cu
	warps := int((a.heads+headsOfWarp-1)/headsOfWarp + 2*((a.kvHeads+headsOfWarp-1)/headsOfWarp))
	return c.launch("rope", "turn_"+cacheNames[c.Layout.lim.Cache], plan.Tokens, device.Arguments(a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (warps + turnWarps - 1) / turnWarps, Y: sh.Tokens}
	})
}

func (rope) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	in, out := c.forms(n.In[0]), c.forms(n.Out)
	r := n.Attr.(plan.RopeAttr)
	if anyRotation(n) {
		a := rotateArgs{x: in.F32, by: c.rotation(n), stride: in.Stride, headDim: int32(r.HeadDim), first: int32(r.First), cols: in.Cols, count: c.count(n.Out), out: out}
		return c.one("rowwise", "rotate", plan.Tokens, device.Arguments(&a), 256, elementGrid(plan.Tokens, out.Stride))
	}
	a := turnArgs{q: in.F32, qStride: in.Stride, heads: in.Cols / int32(r.HeadDim), headDim: int32(r.HeadDim), qOut: out.F32, qOutStride: out.Stride}
	a.qAngles, a.qDims, a.qInterleaved = c.turned(n)
	l, err := c.turn(&a)
	return []Launch{l}, err
}

// rotationArgs is a rotation of part of a row; see kernels/rotation.cuh.
type rotationArgs struct {
	angles            driver.DevicePtr
	dims, interleaved int32
}

// rotation returns what n, a rope or nil, does to the numbers that it rotates.
func (c *Compiler) rotation(n *plan.Node) (r rotationArgs) {
	r.angles, r.dims, r.interleaved = c.turned(n)
	return r
}

type rotateArgs struct {
	x                            driver.DevicePtr
	by                           rotationArgs
	stride, headDim, first, cols int32
	count                        driver.DevicePtr
	out                          device.Forms
}
