package plantest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A link is an operation whose result only the next one reads, and its definition by element.
type link struct {
	name  string
	add   func(b *plan.Builder, v plan.Value) plan.Value
	apply func(v [][]float64) [][]float64
}

// chains compares elementwise operations behind others with float64. A backend may apply them in the
// launch of the operation before.
func chains(t *testing.T, b plan.Backend) {
	for _, c := range []struct{ width, group int }{{65, 13}, {256, 128}} {
		rng := newRand(uint64(c.width))
		table, other := Weight(rng, "table", tensor.F32, 1, 23, c.width), Weight(rng, "other", tensor.F32, 0.1, c.width, c.width)
		narrow := Weight(rng, "narrow", tensor.F32, 0.1, c.width/c.group, c.width)
		w, bias, taps := vector(rng, "w", 1, 0.3, c.width), vector(rng, "bias", 0, 1, c.width), Weight(rng, "taps", tensor.F32, 1, c.width, 3)
		head := vector(rng, "head", 1, 0.3, c.group)
		list := ids(rng, 12, 23)
		x := rowsOf(matrix(table), list)
		y, z := product(x, matrix(other), nil), product(x, matrix(narrow), nil)
		row := func(w *tensor.Tensor) []float64 { return matrix(w)[0] }
		each := func(of func(v float64, i, j int) float64) func([][]float64) [][]float64 {
			return func(v [][]float64) [][]float64 {
				all := make([][]float64, len(v))
				for i := range v {
					for j := range v[i] {
						all[i] = append(all[i], of(v[i][j], i, j))
					}
				}
				return all
			}
		}
		var yValue, zValue plan.Value // of the program that is built
		first := []link{
			{"conv", func(b *plan.Builder, v plan.Value) plan.Value {
				return b.Conv(v, taps, bias, b.State(plan.State{Name: "tail", Kind: plan.PerSequence, Size: 2 * c.width}))
			}, func(v [][]float64) [][]float64 { return convolved(v, matrix(taps), row(bias)) }},
			{"rms norm", func(b *plan.Builder, v plan.Value) plan.Value { return b.RMSNorm(v, w, 1e-5) }, func(v [][]float64) [][]float64 { return normalized(v, row(w), 1e-5) }},
			{"rms norm of groups", func(b *plan.Builder, v plan.Value) plan.Value { return b.RMSNorm(v, head, 1e-5) }, func(v [][]float64) [][]float64 { return normalized(v, row(head), 1e-5) }},
			{"layer norm", func(b *plan.Builder, v plan.Value) plan.Value { return b.LayerNorm(v, w, bias, 1e-5) }, func(v [][]float64) [][]float64 { return centered(v, row(w), row(bias), 1e-5) }},
			{"glu", func(b *plan.Builder, v plan.Value) plan.Value { return b.GLU(v, v, plan.GLUAttr{Act: plan.Sigmoid}) }, each(func(v float64, _, _ int) float64 { return activated[plan.Sigmoid](v) * v })},
			{"map", func(b *plan.Builder, v plan.Value) plan.Value { return b.Activate(v, plan.GELU) }, each(func(v float64, _, _ int) float64 { return activated[plan.GELU](v) })},
			{"add", func(b *plan.Builder, v plan.Value) plan.Value { return b.Add(v, v) }, each(func(v float64, _, _ int) float64 { return 2 * v })},
		}
		silu := link{"silu", func(b *plan.Builder, v plan.Value) plan.Value { return b.Activate(v, plan.SiLU) }, each(func(v float64, _, _ int) float64 { return activated[plan.SiLU](v) })}
		scale := link{"scale", func(b *plan.Builder, v plan.Value) plan.Value { return b.Scale(v, 0.7) }, each(func(v float64, _, _ int) float64 { return 0.7 * v })}
		plus := link{"add", func(b *plan.Builder, v plan.Value) plan.Value { return b.Add(yValue, v) }, each(func(v float64, i, j int) float64 { return y[i][j] + v })}
		gated := link{"gated", func(b *plan.Builder, v plan.Value) plan.Value {
			return b.GLU(zValue, v, plan.GLUAttr{Act: plan.Sigmoid})
		}, each(func(v float64, i, j int) float64 { return activated[plan.Sigmoid](z[i][j/c.group]) * v })}
		gate := link{"gate", func(b *plan.Builder, v plan.Value) plan.Value {
			return b.GLU(v, yValue, plan.GLUAttr{Act: plan.ReLU, Limit: 1.5, Late: true, Shift: 0.5})
		}, each(func(v float64, i, j int) float64 {
			return min(activated[plan.ReLU](v), 1.5) * (max(-1.5, min(y[i][j], 1.5)) + 0.5)
		})}
		for _, from := range first {
			for _, chain := range [][]link{{silu}, {gated}, {gated, plus, plus}, {gate, scale}, {plus, gated, silu, plus, scale}} {
				want, names := from.apply(x), []string{from.name}
				for _, l := range chain {
					want, names = l.apply(want), append(names, l.name)
				}
				p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
					yValue, zValue = b.Linear(x, other, nil), b.Linear(x, narrow, nil)
					v := from.add(b, x)
					for _, l := range chain {
						v = l.add(b, v)
					}
					return b.Add(v, b.Scale(yValue, 0)) // yValue has another reader
				})
				what := fmt.Sprintf("%d columns: %s", c.width, strings.Join(names, ", "))
				near(t, what, outputs(t, b, p, list, tensor.F32, 16, 0), want, 2e-5, 0)
			}
		}
	}
}
