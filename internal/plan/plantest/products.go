package plantest

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// products holds what is promised of 8-bit activations: they are blocks of 32
// values with one scale, max|x|/127, rounded to the nearest; with these the
// products are exact but for float32 sums, and they are near those of float32.
func products(t *testing.T, b plan.Backend) {
	for _, d := range Dtypes {
		if !plan.InBytes(d) {
			inFloats(t, b, d)
			continue
		}
		// 4,608 values are blocks of every length, and many of them.
		for _, k := range []int{d.BlockLen(), 3 * d.BlockLen(), 1024, 4608} {
			for _, rows := range []int{1, 15, 16, 33, 70} {
				if k == 4608 && rows != 33 {
					continue
				}
				rng := newRand(uint64(k*100 + rows))
				table := Weight(rng, "table", tensor.F32, 1, 31, k)
				w := Weight(rng, "w", d, 0.5, rows, k)
				bias := vector(rng, "bias", 0, 1, rows)
				for _, tokens := range []int{1, 5, 20} {
					list := ids(rng, tokens, 31)
					x := rowsOf(matrix(table), list)
					what := fmt.Sprintf("%v %d x %d, %d tokens", d, rows, k, tokens)
					p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, bias) })
					got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: tensor.Q8_0}, 16, 0)
					near(t, what, got, product(rounded8(x), matrix(w), matrix(bias)[0]), 1e-5, math.Sqrt(float64(k)))
					if e := distance(got, product(x, matrix(w), matrix(bias)[0])); e > 2e-2 && rows*tokens >= 150 {
						t.Errorf("%s: %.2g from float32 activations", what, e)
					}
				}
			}
		}
	}
}

// inFloats holds what is promised of formats that do not take such activations: the
// products are those of floats, of 16 bits or more.
func inFloats(t *testing.T, b plan.Backend, d tensor.DType) {
	const rows, tokens, k = 33, 5, 768
	rng := newRand(uint64(d))
	table := Weight(rng, "table", tensor.F32, 1, 31, k)
	w := Weight(rng, "w", d, 0.5, rows, k)
	list := ids(rng, tokens, 31)
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, nil) })
	got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: tensor.Q8_0}, 16, 0)
	if e := distance(got, product(rowsOf(matrix(table), list), matrix(w), nil)); e > 1e-2 {
		t.Errorf("%v: %.2g from float32 activations", d, e)
	}
}

// rounded8 is x as blocks of 8-bit values.
func rounded8(x [][]float64) [][]float64 {
	y := make([][]float64, len(x))
	for r := range x {
		for i := 0; i < len(x[r]); i += 32 {
			top := 0.0
			for _, v := range x[r][i : i+32] {
				top = max(top, math.Abs(v))
			}
			d, inverse := float64(float32(top)/127), float64(127/float32(top))
			if top == 0 {
				inverse = 0
			}
			for _, v := range x[r][i : i+32] {
				y[r] = append(y[r], d*math.RoundToEven(float64(float32(v*inverse))))
			}
		}
	}
	return y
}

// distance is the size of got-want in parts of want's (Frobenius).
func distance(got [][]float32, want [][]float64) float64 {
	var diff, size float64
	for i := range want {
		for j, v := range want[i] {
			diff += (float64(got[i][j]) - v) * (float64(got[i][j]) - v)
			size += v * v
		}
	}
	return math.Sqrt(diff / size)
}
