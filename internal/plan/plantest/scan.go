package plantest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// negative returns a random F32 tensor of values from -most to 0.
func negative(rng *rand.Rand, name string, most float64, shape ...int) *tensor.Tensor {
	w := Weight(rng, name, tensor.F32, 1, shape...)
	for i := range w.Elems() {
		binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(float32(-most*rng.Float64())))
	}
	return w
}

// softplus returns log(1 + exp(x)).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// scanned computes the scan of a whole sequence in float64.
func scanned(x, dt, in, out, a [][]float64, skip []float64) [][]float64 {
	h := make([][]float64, len(a))
	for c := range h {
		h[c] = make([]float64, len(a[c]))
	}
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, len(a))
		for c := range a {
			s := softplus(dt[t][c])
			for n, decay := range a[c] {
				h[c][n] = math.Exp(s*decay)*h[c][n] + s*x[t][c]*in[t][n]
				y[t][c] += h[c][n] * out[t][n]
			}
			y[t][c] += skip[c] * x[t][c]
		}
	}
	return y
}

// scan scans several sequences cut into steps of several sizes. Steps and decays range from almost
// nothing to what leaves nothing of the state.
func scan(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		width, states int
		steps, decay  float64
	}{{64, 16, 1, 4}, {200, 16, 3, 16}, {33, 4, 1, 1e-3}, {1, 1, 1, 1}, {130, 20, 40, 300}} {
		rng := newRand(uint64(c.width))
		table := Weight(rng, "table", tensor.F32, 1, 41, c.width)
		steps := Weight(rng, "steps", tensor.F32, c.steps/math.Sqrt(float64(c.width)), c.width, c.width)
		ins, outs := Weight(rng, "in", tensor.F32, 0.3, c.states, c.width), Weight(rng, "out", tensor.F32, 0.3, c.states, c.width)
		a, skip := negative(rng, "a", c.decay, c.width, c.states), vector(rng, "skip", 0, 1, c.width)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			state := b.State(plan.State{Name: "h", Kind: plan.PerSequence, Size: c.states * c.width})
			return b.Scan(x, b.Linear(x, steps, nil), b.Linear(x, ins, nil), b.Linear(x, outs, nil), a, skip, state)
		})
		r := runner(t, b, p, 200, 3, 100, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
		lists := [][]int32{ids(rng, 70, 41), ids(rng, 1, 41), ids(rng, 33, 41)}
		inSteps(t, r, fmt.Sprintf("%+v", c), lists, [][]int{{70, 1, 33}, {1, 1, 7}, {64, 1, 2}}, 2e-5, 1, func(list []int32) [][]float64 {
			x := rowsOf(matrix(table), list)
			return scanned(x, product(x, matrix(steps), nil), product(x, matrix(ins), nil), product(x, matrix(outs), nil),
				matrix(a), matrix(&tensor.Tensor{DType: tensor.F32, Shape: []int{1, c.width}, Data: skip.Data})[0])
		})
	}
}
