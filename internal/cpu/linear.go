package cpu

import (
	"github.com/realizar/realizar/internal/plan"
)

// linear splits the rows of the weight over the workers. Each row is
// dequantised once a step, whatever the number of tokens.
func linear(e *executable, n *plan.Node) ([]kernel, error) {
	w, dequantize := n.Weight, e.tier.dequantizer(n.Weight.DType)
	bias, err := floats(n.Bias)
	if err != nil {
		return nil, err
	}
	k := w.Cols()
	return []kernel{{size: w.Rows, grain: 2 * dotRows, run: func(worker, lo, hi int) {
		tile := e.tile(worker, dotRows*k)
		for ; lo < hi; lo += dotRows {
			rows := min(dotRows, hi-lo)
			for i := range rows {
				dequantize(tile[i*k:(i+1)*k], w.Row(lo+i))
			}
			e.multiply(n, worker, tile, bias, lo, rows)
		}
	}}}, nil
}

// multiply computes outputs lo to lo+rows of every token from tile, which holds
// these rows of the weight.
func (e *executable) multiply(n *plan.Node, worker int, tile, bias []float32, lo, rows int) {
	sums := e.desks[worker].sums[:]
	x := e.code.buffers[e.code.scratch.Buffer[n.In[0]]]
	k, tokens := n.Weight.Cols(), e.size(n.Out)
	for t := 0; t < tokens; t += dotTokens {
		at := min(dotTokens, tokens-t)
		e.tier.dots(sums, tile, x[t*k:], k, at)
		for i := range at {
			y := e.row(n.Out, t+i)[lo : lo+rows]
			copy(y, sums[i*dotRows:])
			if bias != nil {
				for r := range y {
					y[r] += bias[lo+r]
				}
			}
		}
	}
}

// A desk is what one worker works on, for all nodes.
type desk struct {
	tile  []float32 // rows of a weight, as large as any node has needed
	sums  [dotTokens * dotRows]float32
	bench bench
}

// tile is n values of a worker's desk.
func (e *executable) tile(worker, n int) []float32 {
	d := &e.desks[worker]
	if len(d.tile) < n {
		d.tile = make([]float32, n)
	}
	return d.tile[:n]
}
