package cpu

import (
	"errors"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// storedTokens is the number of tokens up to which unquantized rows are multiplied in their stored
// form. They are converted once for every few tokens, but in registers.
const storedTokens = 4

// linear multiplies a value with a weight.
type linear struct{ ordinary }

func (linear) joins() bool { return true }

func (linear) multiplies(n *plan.Node) []*tensor.Tensor { return []*tensor.Tensor{n.Weight} }

func (linear) pieces(*plan.Node) int { return dotRows }

func (o linear) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	if s.Node().Summed() != nil {
		return nil, errors.New("processors do not add the sums of parts")
	}
	if e.weights[s.Node().Weight] != nil {
		return project(e, s)
	}
	return o.floats(e, s.Node())
}

// floats multiplies float32 activations. It splits the rows of the weight over the workers. For
// many tokens each row is dequantized once; for few tokens unquantized rows are converted in
// registers. The bits are the same.
func (linear) floats(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize, stored := e.stored(n.Weight), e.tier.dequantizer(n.Weight.DType), e.tier.stored[n.Weight.DType]
	bias, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	k, stride := w.Cols(), rowStride(w.Cols())
	size := func() int {
		if e.size(n.Out) == 0 {
			return 0 // the step wants no rows
		}
		return w.Rows()
	}
	return []kernel{{size: size, grain: 2 * dotRows, run: func(worker, lo, hi int) {
		desk := &e.desks[worker]
		for ; lo < hi; lo += dotRows {
			rows := min(dotRows, hi-lo)
			if stored != nil && e.size(n.Out) <= storedTokens {
				size := len(w.Row(lo))
				desk.multiply(e, n, bias, lo, rows, func(sums, x []float32, tokens int) {
					stored(sums, w.Data[lo*size:], size, x, k, stride, tokens)
				})
				continue
			}
			for i := range rows {
				dequantize(desk.tile[i*stride:][:k], w.Row(lo+i))
			}
			desk.multiply(e, n, bias, lo, rows, func(sums, x []float32, tokens int) {
				e.tier.dots(sums, desk.tile, x, k, stride, tokens)
			})
		}
	}}}, nil
}

// multiply computes outputs lo to lo+rows of every token. products multiplies the activations of a
// few tokens at a time.
func (d *desk) multiply(e *executable, n *plan.Node, bias []float32, lo, rows int, products func(sums, x []float32, tokens int)) {
	x := e.code.buffers[e.code.scratch.Buffer[n.In[0]]]
	stride, tokens := rowStride(n.Weight.Cols()), e.size(n.Out)
	for t := 0; t < tokens; t += dotTokens {
		at := min(dotTokens, tokens-t)
		products(d.sums[:], x[t*stride:], at)
		for i := range at {
			y := e.row(n.Out, t+i)[lo : lo+rows]
			copy(y, d.sums[i*dotRows:])
			if bias != nil {
				e.tier.vector.add(y, y, bias[lo:lo+rows])
			}
		}
	}
}

func (linear) reference(e *executable, n *plan.Node) ([]kernel, error) {
	bias, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	k, p, dequantize := n.Weight.Cols(), precisionOf(n.Weight.DType, &e.lim), generic.dequantizer(n.Weight.DType)
	var inputs []multiplicand
	prepare := one(func() {
		inputs = inputs[:0]
		for r := range e.size(n.Out) {
			inputs = append(inputs, e.multiplicand(n.Weight.DType, e.row(n.In[0], r), e.bound(n.In[0], r)))
		}
	})
	return []kernel{prepare, {size: n.Weight.Rows, grain: tileRows, run: func(_, lo, hi int) {
		rows, w := rowReader{w: e.stored(n.Weight)}, make([]float32, k)
		for o := lo; o < hi && len(inputs) > 0; o++ {
			dequantize(w, rows.row(o))
			row, b := p.row(w), float32(0)
			if bias != nil {
				b = bias[o]
			}
			for r := range inputs {
				y, bound := inputs[r].times(&row, b)
				e.row(n.Out, r)[o] = float32(y)
				if to := e.bound(n.Out, r); to != nil {
					to[o] = float32(bound)
				}
			}
		}
	}}}, nil
}
