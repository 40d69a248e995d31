package lower

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
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
	out                       device.Forms
}

// bidirectionalKernels lists the maximum head dimension of each kernel, and the queries per block.
var bidirectionalKernels = []struct {
	name             string
	headDim, queries int
}{{"bidirectional_64", 64, 32}, {"bidirectional_128", 128, 32}, {"bidirectional_256", 256, 16}}

// bidirectionalKeys is the number of keys that a block holds at a time.
const bidirectionalKeys = 32

// bidirectional implements [plan.Bidirectional].
type bidirectional struct{ ordinary }

func (bidirectional) writes(s *fuse.Stage) bool { return wholeBlocks(s.Node()) }

func (bidirectional) check(n *plan.Node) error {
	if d := n.Attr.(plan.AttentionAttr).HeadDim; d > maxHeadDim {
		return fmt.Errorf("no kernel for heads of %d values, of which %d is the most", d, maxHeadDim)
	}
	return nil
}

func (bidirectional) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.AttentionAttr)
	q, k, v := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.In[2])
	// Rows are an odd multiple of 16 bytes, so lanes that read the same column of neighboring rows
	// use different banks.
	padded := (attr.HeadDim+3)/4 | 1
	a := bidirectionalArgs{
		q: q.F32, k: k.F32, v: v.F32, qStride: q.Stride, kStride: k.Stride, vStride: v.Stride,
		share: int32(attr.Heads / attr.KVHeads), headDim: int32(attr.HeadDim), scale: float32(attr.Scale * math.Log2E), window: int32(min(attr.Window, 1<<30)),
		padded: int32(4 * padded), sequence: c.Step.sequence, starts: c.Step.starts, count: c.count(n.Out), out: c.forms(n.Out),
	}
	for _, b := range bidirectionalKernels {
		if attr.HeadDim > b.headDim {
			continue
		}
		shared := 4 * (4*padded*(b.queries+bidirectionalKeys) + bidirectionalKeys*b.headDim)
		l, err := c.launchShared("bidirectional", b.name, plan.Tokens, device.Arguments(&a), 256, shared, 0, func(sh *Shape) driver.Dim3 {
			return driver.Dim3{X: (sh.Tokens + b.queries - 1) / b.queries, Y: attr.Heads}
		})
		return []Launch{l}, err
	}
	return nil, fmt.Errorf("no kernel for heads of %d values", attr.HeadDim)
}
