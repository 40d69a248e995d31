package plantest

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// unitsOf computes the linear recurrent unit for a whole sequence in float64.
func unitsOf(x, input, decay [][]float64, a *plan.LRUAttr) [][]float64 {
	vector := func(w *tensor.Tensor) []float64 {
		return matrix(&tensor.Tensor{DType: w.DType, Shape: []int{1, w.Elems()}, Data: w.Data})[0]
	}
	rate, inputBias, decayBias := vector(a.Rate), vector(a.InputBias), vector(a.DecayBias)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	h := make([]float64, len(rate))
	y := make([][]float64, len(x))
	for t := range x {
		for c := range h {
			in := x[t][c] * sigmoid(input[t][c]+inputBias[c])
			if t == 0 {
				h[c] = in
			} else {
				exponent := -8 * softplus(rate[c]) * sigmoid(decay[t][c]+decayBias[c])
				h[c] = math.Exp(exponent)*h[c] + math.Sqrt(-math.Expm1(2*exponent))*in
			}
			y[t] = append(y[t], h[c])
		}
	}
	return y
}

// lru computes several sequences cut into steps of several sizes. Decays range from almost none to
// what leaves nothing of the token before.
func lru(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		width               int
		rate, spread, gates float64
	}{{64, 0, 2, 1}, {200, -6, 1, 3}, {33, 3, 1, 1}, {1, 0, 1, 1}, {130, -14, 2, 4}} {
		rng := newRand(uint64(c.width))
		table := Weight(rng, "table", tensor.F32, 1, 41, c.width)
		input := Weight(rng, "input", tensor.F32, c.gates/math.Sqrt(float64(c.width)), c.width, c.width)
		decay := Weight(rng, "decay", tensor.F32, c.gates/math.Sqrt(float64(c.width)), c.width, c.width)
		a := plan.LRUAttr{Rate: vector(rng, "rate", c.rate, c.spread, c.width), InputBias: vector(rng, "input.bias", 0, 1, c.width), DecayBias: vector(rng, "decay.bias", 0, 1, c.width)}
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			state := b.State(plan.State{Name: "h", Kind: plan.PerSequence, Size: c.width})
			return b.LRU(x, b.Linear(x, input, nil), b.Linear(x, decay, nil), state, a)
		})
		r := runner(t, b, p, 200, 3, 100, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
		lists := [][]int32{ids(rng, 70, 41), ids(rng, 1, 41), ids(rng, 33, 41)}
		inSteps(t, r, fmt.Sprintf("%+v", c), lists, [][]int{{70, 1, 33}, {1, 1, 7}, {64, 1, 2}}, 2e-5, 1, func(list []int32) [][]float64 {
			x := rowsOf(matrix(table), list)
			return unitsOf(x, product(x, matrix(input), nil), product(x, matrix(decay), nil), &a)
		})
	}
}
