package plantest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// mixedFormats checks that products of one input in unlike formats, which a backend may compute together,
// have the bits of each by itself, and that a gate of another format than what it gates is applied
// to both.
func mixedFormats(t *testing.T, b plan.Backend) {
	const k = 512
	for _, formats := range longtest.Cases([][]tensor.DType{
		{tensor.Q4_K, tensor.Q4_K, tensor.Q6_K},
		{tensor.Q6_K, tensor.Q4_K, tensor.Q6_K, tensor.Q4_K},
		{tensor.Q5_K, tensor.Q6_K},
		{tensor.Q6_K, tensor.Q5_K, tensor.Q4_K},
		{tensor.Q4_K, tensor.Q6_K, tensor.Q5_K, tensor.Q8_0},
	}, [][]tensor.DType{{tensor.Q4_K, tensor.Q4_K, tensor.Q6_K}}) {
		for _, normed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, after a norm: %v", formats, normed), func(t *testing.T) {
				rng := newRand(uint64(len(formats)))
				table, norm := Weight(rng, "table", tensor.F32, 1, 31, k), vector(rng, "norm", 1, 0.3, k)
				var ws, biases []*tensor.Tensor
				for i, d := range formats {
					rows := 33 + 70*(i%2)
					ws = append(ws, Weight(rng, fmt.Sprint("w", i), d, 0.5, rows, k))
					biases = append(biases, vector(rng, fmt.Sprint("bias", i), 0, 1, rows))
				}
				input := func(b *plan.Builder, x plan.Value) plan.Value {
					if normed {
						return b.RMSNorm(x, norm, 1e-5)
					}
					return x
				}
				all := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
					x = input(b, x)
					var ys []plan.Value
					for i, w := range ws {
						ys = append(ys, b.Linear(x, w, biases[i]))
					}
					y := ys[0]
					for _, z := range ys[1:] {
						y = b.Concat(y, z)
					}
					return y
				})
				for _, n := range []int{1, 2, 9, 20} {
					list, base := ids(rng, n, 31), plan.Limits{Cache: tensor.F32, Activations: b.Rounds()}
					want := make([][]float32, n)
					for i, w := range ws {
						one := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(input(b, x), w, biases[i]) })
						for row, y := range outputsWith(t, b, one, list, base, 16, 0) {
							want[row] = append(want[row], y...)
						}
					}
					same(t, fmt.Sprint(n, " tokens"), outputsWith(t, b, all, list, base, 16, 0), want)
				}
			})
		}
	}

	rng := newRand(5)
	table := Weight(rng, "table", tensor.F32, 1, 31, k)
	gate, up := Weight(rng, "gate", tensor.Q4_K, 0.05, 40, k), Weight(rng, "up", tensor.Q6_K, 0.05, 40, k)
	apart := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
		return b.Concat(b.Linear(x, gate, nil), b.Linear(x, up, nil))
	})
	gated := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
		return b.GLU(b.Linear(x, gate, nil), b.Linear(x, up, nil), plan.GLUAttr{Act: plan.SiLU})
	})
	for _, n := range []int{1, 9} {
		list, base := ids(rng, n, 31), plan.Limits{Cache: tensor.F32, Activations: b.Rounds()}
		both := outputsWith(t, b, apart, list, base, 16, 0)
		for row, got := range outputsWith(t, b, gated, list, base, 16, 0) {
			for i, v := range got {
				g, u := float64(both[row][i]), float64(both[row][40+i])
				if want := g / (1 + math.Exp(-g)) * u; math.Abs(float64(v)-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("gate in Q4_K, up in Q6_K, %d tokens, row %d, %d: %v, want %v", n, row, i, v, want)
				}
			}
			if slices.Max(got) == 0 {
				t.Errorf("row %d has no value", row)
			}
		}
	}
}
