package cpu

import (
	"github.com/realizar/realizar/internal/plan"
)

// rowsAtOnce is how many rows of a weight a worker dequantises before it passes
// over the activations.
const rowsAtOnce = 8

// linear splits the rows of the weight over the workers. Each row is
// dequantised once a step, whatever the number of tokens.
func linear(_ *executable, n *plan.Node) (kernel, error) {
	w := n.Weight
	bias, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	k := w.Cols()
	return func(e *executable) {
		e.workers.share(w.Rows(), 16, func(worker, lo, hi int) {
			tile := e.tile(worker, rowsAtOnce*k)
			for lo < hi {
				rows := min(rowsAtOnce, hi-lo)
				for i := range rows {
					dequantize(w, lo+i, tile[i*k:(i+1)*k])
				}
				for r := range e.size(n.Out) {
					x, y := e.row(n.In[0], r), e.row(n.Out, r)[lo:lo+rows]
					for i := range y {
						y[i] = dot(tile[i*k:(i+1)*k], x)
					}
					if bias != nil {
						for i := range y {
							y[i] += bias[lo+i]
						}
					}
				}
				lo += rows
			}
		})
	}, nil
}

// tile is a worker's scratch of n values, shared by all nodes.
func (e *executable) tile(worker, n int) []float32 {
	if len(e.tiles[worker]) < n {
		e.tiles[worker] = make([]float32, n)
	}
	return e.tiles[worker][:n]
}

// segment is the length of the pieces that a sum over K is cut into: each is
// summed from zero, and the sums are added in ascending order.
const segment = 256

// dot is the sum of w[i]*x[i]. Its order is a property of len(w) alone.
func dot(w, x []float32) float32 {
	var sum float32
	for len(w) > segment {
		sum += dotSegment(w[:segment], x[:segment])
		w, x = w[segment:], x[segment:]
	}
	return sum + dotSegment(w, x)
}

// dotSegment sums in four lanes, lane i taking every fourth product.
func dotSegment(w, x []float32) float32 {
	var a, b, c, d float32
	for len(w) >= 4 && len(x) >= 4 {
		a += w[0] * x[0]
		b += w[1] * x[1]
		c += w[2] * x[2]
		d += w[3] * x[3]
		w, x = w[4:], x[4:]
	}
	for i, v := range w {
		a += v * x[i]
	}
	return (a + b) + (c + d)
}
