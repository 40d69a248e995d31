package plantest

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// rounded returns x rounded as for products with weights of d, if that is defined to the bit: to
// blocks of 8 bits if activations are Q8_0. Otherwise it returns x.
func rounded(x [][]float64, activations, d tensor.DType) [][]float64 {
	if activations == tensor.Q8_0 && plan.InBytes(d) {
		return rounded8(x)
	}
	return x
}

// slack returns the largest relative distance of products with weights of d from products of
// [rounded] activations. F16 activations are divided by 64 and rounded to nearest, and so are
// weights and the scales of blocks: the distance is 2e-4 to 5e-4. With BF16 weights activations are
// BF16, which alone causes 1.7e-3. In F8_E4M3 both factors have an error of 2.6e-2.
func slack(activations, d tensor.DType) float64 {
	switch {
	case activations != tensor.F16 && activations != tensor.F8_E4M3 || d == tensor.F32 || d == tensor.F64:
		return 5e-6
	case activations == tensor.F8_E4M3:
		return 5e-2
	case d == tensor.BF16:
		return 4e-3
	}
	return 1e-3
}

// chained returns the slack of successive products with weights of these formats. Activations
// between them may round to 8 bits in the other direction, which weighs more if there are few of
// them.
func chained(activations tensor.DType, formats ...tensor.DType) float64 {
	most := 0.0
	for _, d := range formats {
		if most = max(most, 2*slack(activations, d)); activations == tensor.Q8_0 && plan.InBytes(d) {
			most = max(most, 2e-3)
		}
	}
	return most
}

// promised checks products of x with w and bias: each value, and if there are enough of them, the
// distance of all.
func promised(t *testing.T, what string, got [][]float32, x [][]float64, w *tensor.Tensor, bias []float64, activations tensor.DType) {
	t.Helper()
	m, most := matrix(w), slack(activations, w.DType)
	want := product(rounded(x, activations, w.DType), m, bias)
	if activations != tensor.F16 && activations != tensor.F8_E4M3 {
		near(t, what, got, want, 1e-5, math.Sqrt(float64(w.Cols())))
		return
	}
	for i := range want {
		for o, v := range want[i] {
			var squares float64
			for k, u := range x[i] {
				squares += u * m[o][k] * u * m[o][k]
			}
			if d := math.Abs(float64(got[i][o]) - v); !(d <= 4*most*math.Sqrt(squares)+most*math.Abs(v)) {
				t.Fatalf("%s: row %d, column %d: %v, want %v", what, i, o, got[i][o], v)
			}
		}
	}
	if e := distance(got, want); e > most && len(want)*len(m) >= 150 {
		t.Errorf("%s: %.2g from products without rounding, want at most %.2g", what, e, most)
	}
}

// products checks products of rounded activations. Q8_0 activations are blocks of 32 values with
// one scale, max|x|/127, rounded to nearest, for weights with [plan.InBytes]. These products are
// exact but for float32 sums, and near those of float32 activations. Weights of other formats have
// float32 activations. F16 activations are near float32, see [slack]. Formats with planes, for which
// backends may have kernels of their own, take many shapes.
func products(t *testing.T, b plan.Backend) {
	activations := b.Rounds()
	for _, d := range Dtypes {
		if d.Format().Planes == nil {
			inFloats(t, b, d)
			continue
		}
		// 4,608 columns are many whole blocks of every format.
		for _, k := range []int{d.BlockLen(), 3 * d.BlockLen(), 1024, 4608} {
			for _, rows := range longtest.Cases([]int{1, 15, 16, 33, 70}, []int{15, 33}) {
				if k == 4608 && rows != 33 {
					continue
				}
				rng := newRand(uint64(k*100 + rows))
				table := Weight(rng, "table", tensor.F32, 1, 31, k)
				w := Weight(rng, "w", d, 0.5, rows, k)
				bias := vector(rng, "bias", 0, 1, rows)
				for _, tokens := range longtest.Cases([]int{1, 5, 20, 150}, []int{1, 20}) {
					if tokens == 150 && (k != 1024 || rows != 70) {
						continue
					}
					list := ids(rng, tokens, 31)
					x := rowsOf(matrix(table), list)
					what := fmt.Sprintf("%v %d x %d, %d tokens, %v activations", d, rows, k, tokens, activations)
					p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, bias) })
					got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: activations}, 16, 0)
					promised(t, what, got, x, w, matrix(bias)[0], activations)
					if e := distance(got, product(x, matrix(w), matrix(bias)[0])); e > max(2e-2, slack(activations, d)) && rows*tokens >= 150 {
						t.Errorf("%s: %.2g from float32 activations", what, e)
					}
				}
			}
		}
	}
}

// ProductBits checks that a row's product does not depend on the number of other rows, for all
// numbers for which a backend may have another kernel.
func ProductBits(t *testing.T, b plan.Backend) {
	for _, d := range Dtypes {
		t.Run(d.String(), func(t *testing.T) {
			for _, k := range []int{768, 4608} {
				productBits(t, b, d, k)
			}
		})
	}
}

func productBits(t *testing.T, b plan.Backend, d tensor.DType, k int) {
	const rows, tokens = 300, 300
	rng := newRand(uint64(d))
	table := Weight(rng, "table", tensor.F32, 1, 31, k)
	w, up := Weight(rng, "w", d, 0.5, rows, k), Weight(rng, "up", d, 0.5, rows, k)
	list := ids(rng, tokens, 31)
	for name, p := range map[string]*plan.Program{
		"plain": single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, nil) }),
		"gated": single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			return b.GLU(b.Linear(x, w, nil), b.Linear(x, up, nil), plan.GLUAttr{Act: plan.SiLU})
		}),
	} {
		r := runner(t, b, p, tokens, 1, tokens, plan.Limits{Cache: tensor.F32, Activations: b.Rounds()})
		run := func(step int) [][]float32 {
			s := r.Add(list, step)
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			r.Drop(s)
			return s.Logits
		}
		want := run(tokens)
		for _, step := range []int{1, 2, 8, 9, 17, 40, 64, 65, 129, 256} {
			same(t, fmt.Sprintf("%s product of %v, %d columns, steps of %d", name, d, k, step), run(step), want)
		}
	}
}

// inFloats checks the same for a format whose products read floats.
func inFloats(t *testing.T, b plan.Backend, d tensor.DType) {
	const rows, tokens, k = 33, 5, 768
	rng := newRand(uint64(d))
	table := Weight(rng, "table", tensor.F32, 1, 31, k)
	w := Weight(rng, "w", d, 0.5, rows, k)
	list := ids(rng, tokens, 31)
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, nil) })
	got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: b.Rounds()}, 16, 0)
	promised(t, fmt.Sprintf("%v, %v activations", d, b.Rounds()), got, rowsOf(matrix(table), list), w, nil, b.Rounds())
}

// rounded8 returns x rounded to blocks of 8-bit values.
func rounded8(x [][]float64) [][]float64 {
	return eachRow(x, func(row []float64) (y []float64) {
		for i := 0; i < len(row); i += 32 {
			top := 0.0
			for _, v := range row[i : i+32] {
				top = max(top, math.Abs(v))
			}
			d, inverse := float64(float32(top)/127), float64(127/float32(top))
			if top == 0 {
				inverse = 0
			}
			for _, v := range row[i : i+32] {
				y = append(y, d*math.RoundToEven(float64(float32(v*inverse))))
			}
		}
		return y
	})
}

// distance returns the Frobenius norm of got-want divided by that of want.
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
