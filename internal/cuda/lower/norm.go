package lower

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// norm implements [plan.RMSNorm], and [plan.LayerNorm] if centered is 1.
type norm struct {
	ordinary
	centered int32
}

type normArgs struct {
	x                       driver.DevicePtr
	stride, cols            int32
	group, centered         int32
	eps                     float32
	width                   int32
	weight, bias, at, count driver.DevicePtr
	out                     device.Forms
	gate                    driver.DevicePtr
	gateStride, gateEach    int32
	unit                    unit
	_                       int32
}

// most depends on the weights: no column of a group of n exceeds the square root of n times the
// group's root mean square.
func (norm) most(n *plan.Node) float64 {
	largest := func(t *tensor.Tensor) (most float64) {
		if t == nil {
			return 0
		}
		err := tensor.Guard(func() error {
			values, err := t.Float32s()
			for _, v := range values {
				most = max(most, math.Abs(float64(v)))
			}
			return err
		})
		if err != nil {
			return 0 // loading the weight reports the error
		}
		return most
	}
	return math.Sqrt(float64(n.Attr.(plan.NormAttr).Group))*largest(n.Weight) + largest(n.Bias)
}

func (o norm) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.NormAttr)
	in := c.forms(s.Inputs()[0])
	a := normArgs{
		x: in.F32, stride: in.Stride, cols: in.Cols, group: int32(attr.Group), centered: o.centered, eps: float32(attr.Eps), width: int32(n.Weight.Elems()),
		weight: c.weight(n.Weight), bias: c.weight(n.Bias), count: c.count(n.Out), out: c.forms(s.Out()),
	}
	for _, m := range s.Then { // a GLU of the result
		gate := c.forms(m.In[0])
		a.gate, a.gateStride, a.gateEach, a.unit = gate.F32, gate.Stride, a.cols/gate.Cols, unitOf(m.Attr.(plan.GLUAttr))
	}
	if s.Pick != nil {
		a.at = c.Step.rows
	}
	rows := c.rows(n.Out)
	parts := normParts(attr.Group, int(in.Cols))
	l, err := c.launch("norm", a.kernel(), rows, device.Arguments(&a), 512, func(sh *Shape) driver.Dim3 {
		n := sh.Size(rows)
		return driver.Dim3{X: n, Y: max(1, min(parts, c.Multiprocessors/n))}
	})
	if err == nil && c.Layout.Normed[n.Out] == s {
		l = l.unless(func(sh *Shape) bool { return sh.Size(rows) == 1 })
	}
	return []Launch{l}, err
}

// kernel returns the kernel for a norm: rms if it can compute it, which is faster.
func (a *normArgs) kernel() string {
	if a.centered != 0 || a.bias != 0 || a.gate != 0 || a.group != a.cols || a.cols <= 128 || a.cols%4 != 0 || a.weight%16 != 0 {
		return "norm"
	}
	for _, most := range []int32{2048, 4096, 8192} {
		if a.cols <= most {
			return fmt.Sprintf("rms_%d", most)
		}
	}
	return "norm"
}

// normParts returns how many blocks can share a row whose groups have so many columns: four warps of
// each have work. It is 1 if a block computes whole groups; see kernels/norm.cu.
func normParts(group, cols int) int {
	few := group >= 4 && group <= 64 && group&(group-1) == 0
	if group == cols && group > 128 || group > 1024 || !few && group%128 != 0 {
		return 1
	}
	return (cols + 4*max(group, 128) - 1) / (4 * max(group, 128))
}
