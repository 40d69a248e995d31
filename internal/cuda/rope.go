package cuda

import (
	"reflect"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// rope is [plan.Rope] of heads that no attention's stage turns.
type rope struct{ ordinary }

func (rope) writes(*fuse.Stage) bool { return false }

type anglesArgs struct {
	freqs, set, positions, count, out driver.DevicePtr
	pairs                             int32
	scale                             float32
}

// ropes are the distinct ropes of a program.
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
		// The heads' length does not matter to the angles.
		b := all[i]
		b.HeadDim, b.Interleaved = a.HeadDim, a.Interleaved
		if reflect.DeepEqual(a, b) {
			return i
		}
	}
	return -1
}

// angles are those of every rope, for all layers.
func (c *compiler) angles() ([]launch, error) {
	var all []launch
	for i, r := range c.room.ropes {
		a := anglesArgs{
			freqs: c.scratchAt + driver.DevicePtr(c.room.freqs[i]), set: c.step.sets[i], positions: c.step.positions, count: c.step.counts + countTokens,
			out: c.scratchAt + driver.DevicePtr(c.room.angles[i]), pairs: int32(r.Dims / 2), scale: float32(r.Scale),
		}
		l, err := c.launch("rope", "angles", plan.Tokens, arguments(&a), 128, func(sh *shape) driver.Dim3 { return driver.Dim3{X: sh.tokens} })
		if err != nil {
			return nil, err
		}
		l.where, l.moves = "rotary angles", func(b *plan.Batch) int { return len(b.Tokens) * 8 * (r.Dims / 2) }
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

// turned says where a rope's angles are.
func (c *compiler) turned(n *plan.Node) (angles driver.DevicePtr, dims, interleaved int32) {
	if n == nil {
		return 0, 0, 0
	}
	r := n.Attr.(plan.RopeAttr)
	if r.Interleaved {
		interleaved = 1
	}
	return c.scratchAt + driver.DevicePtr(c.room.angles[ropeIndex(c.room.ropes, n)]), int32(r.Dims), interleaved
}

func (c *compiler) turn(a *turnArgs) (launch, error) {
	a.sequence, a.overflow, a.count = c.step.sequence, c.step.overflow, c.step.counts+countTokens
	heads := int(a.heads + 2*a.kvHeads)
	return c.launch("rope", "turn_"+cacheNames[c.l.lim.Cache], plan.Tokens, arguments(a), 128, func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: (heads + 3) / 4, Y: sh.tokens}
	})
}

func (rope) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	n := s.Node()
	in, out := c.forms(n.In[0]), c.forms(n.Out)
	r := n.Attr.(plan.RopeAttr)
	a := turnArgs{q: in.f32, qStride: in.stride, heads: in.cols / int32(r.HeadDim), headDim: int32(r.HeadDim), qOut: out.f32, qOutStride: out.stride}
	a.qAngles, a.qDims, a.qInterleaved = c.turned(n)
	l, err := c.turn(&a)
	return []launch{l}, err
}
