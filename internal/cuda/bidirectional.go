package cuda

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

type bidirectionalArgs struct {
	q, k, v                   driver.DevicePtr
	qStride, kStride, vStride int32
	share, headDim            int32
	scale                     float32
	window, padded            int32
	sequence, starts, count   driver.DevicePtr
	out                       forms
}

// bidirectionalKernels do heads of up to so many elements, with so many queries a block.
var bidirectionalKernels = []struct {
	name             string
	headDim, queries int
}{{"bidirectional_64", 64, 32}, {"bidirectional_128", 128, 32}, {"bidirectional_256", 256, 16}}

// bidirectionalKeys is how many keys a block has at a time.
const bidirectionalKeys = 32

// bidirectional is [plan.Bidirectional].
type bidirectional struct{ ordinary }

func (bidirectional) writes(s *fuse.Stage) bool { return wholeBlocks(s.Node()) }

func (bidirectional) check(n *plan.Node) error {
	if d := n.Attr.(plan.AttentionAttr).HeadDim; d > maxHeadDim {
		return fmt.Errorf("no kernel for heads of %d values, of which %d is the most", d, maxHeadDim)
	}
	return nil
}

func (bidirectional) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.AttentionAttr)
	q, k, v := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.In[2])
	// Rows of an odd number of 16 bytes: lanes that read the same of neighbouring rows
	// read other banks.
	padded := (attr.HeadDim+3)/4 | 1
	a := bidirectionalArgs{
		q: q.f32, k: k.f32, v: v.f32, qStride: q.stride, kStride: k.stride, vStride: v.stride,
		share: int32(attr.Heads / attr.KVHeads), headDim: int32(attr.HeadDim), scale: float32(attr.Scale * math.Log2E), window: int32(min(attr.Window, 1<<30)),
		padded: int32(4 * padded), sequence: c.step.sequence, starts: c.step.starts, count: c.count(n.Out), out: c.forms(n.Out),
	}
	for _, b := range bidirectionalKernels {
		if attr.HeadDim > b.headDim {
			continue
		}
		shared := 4 * (4*padded*(b.queries+bidirectionalKeys) + bidirectionalKeys*b.headDim)
		l, err := c.launchShared("bidirectional", b.name, plan.Tokens, arguments(&a), 256, shared, 0, func(sh *shape) driver.Dim3 {
			return driver.Dim3{X: (sh.tokens + b.queries - 1) / b.queries, Y: attr.Heads}
		})
		return []launch{l}, err
	}
	return nil, fmt.Errorf("no kernel for heads of %d values", attr.HeadDim)
}
