package plantest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// activated computes the activations in float64.
var activated = map[plan.Activation]func(float64) float64{
	plan.SiLU:        func(x float64) float64 { return x / (1 + math.Exp(-x)) },
	plan.GELU:        func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
	plan.GELUTanh:    func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
	plan.ReLU:        func(x float64) float64 { return max(x, 0) },
	plan.ReLUSquared: func(x float64) float64 { return max(x, 0) * max(x, 0) },
	plan.Sigmoid:     func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	plan.QuickGELU:   func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) },
	plan.Tanh:        math.Tanh,
}

// gated computes a GLU in float64. A gate of fewer columns applies each to several columns.
func gated(gate, up [][]float64, a plan.GLUAttr) [][]float64 {
	y := make([][]float64, len(up))
	for r := range up {
		for i, u := range up[r] {
			g := gate[r][i*len(gate[r])/len(up[r])]
			if a.Limit > 0 {
				u = math.Max(-a.Limit, math.Min(u, a.Limit))
				if !a.Late {
					g = math.Min(g, a.Limit)
				}
			}
			if g = activated[a.Act](g); a.Limit > 0 && a.Late {
				g = math.Min(g, a.Limit)
			}
			y[r] = append(y[r], g*(u+a.Shift))
		}
	}
	return y
}

// mapped computes a Map in float64.
func mapped(x [][]float64, f func(float64) float64) [][]float64 {
	y := make([][]float64, len(x))
	for r := range x {
		for _, v := range x[r] {
			y[r] = append(y[r], f(v))
		}
	}
	return y
}

// floatTable returns a table with these rows.
func floatTable(name string, rows ...[]float32) *tensor.Tensor {
	w := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: []int{len(rows), len(rows[0])}}
	for _, row := range rows {
		for _, v := range row {
			w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(v))
		}
	}
	return w
}

// A mapping is a Map and its expected function.
type mapping struct {
	name  string
	node  func(b *plan.Builder, x plan.Value) plan.Value
	f     func(float64) float64
	least float64 // smallest magnitude of x for which float32 holds the result
}

func mappings() []mapping {
	var all []mapping
	for _, act := range plan.Activations() {
		m := mapping{act.String(), func(b *plan.Builder, x plan.Value) plan.Value { return b.Activate(x, act) }, activated[act], math.MaxFloat32}
		if act == plan.ReLUSquared {
			m.least = 1e18
		}
		all = append(all, m)
	}
	for _, by := range []float64{-1, 0.22, 12, math.Sqrt(2048)} {
		all = append(all, mapping{fmt.Sprintf("scale %g", by), func(b *plan.Builder, x plan.Value) plan.Value { return b.Scale(x, by) },
			func(x float64) float64 { return x * by }, 1e36})
	}
	for _, by := range []float64{0.5, 30} {
		all = append(all, mapping{fmt.Sprintf("softcap %g", by), func(b *plan.Builder, x plan.Value) plan.Value { return b.Softcap(x, by) },
			func(x float64) float64 { return by * math.Tanh(x/by) }, math.MaxFloat32})
	}
	for _, by := range []float64{0.5, 30} {
		all = append(all, mapping{fmt.Sprintf("clamp %g", by), func(b *plan.Builder, x plan.Value) plan.Value { return b.Clamp(x, by) },
			func(x float64) float64 { return math.Max(-by, math.Min(x, by)) }, math.MaxFloat32})
	}
	all = append(all, mapping{"softplus", func(b *plan.Builder, x plan.Value) plan.Value { return b.Softplus(x) },
		func(x float64) float64 {
			if x > 30 {
				return x + math.Exp(-x)
			}
			return math.Log1p(math.Exp(x))
		}, math.MaxFloat32})
	for _, c := range []plan.Curve{{P: 0.8, N: 0.8, Beta: 0.5, Eps: -1e-6}, {P: 1.5, N: -0.25, Beta: 0.75, Eps: -0.1}} {
		all = append(all, mapping{fmt.Sprintf("xielu %v", c), func(b *plan.Builder, x plan.Value) plan.Value { return b.XIELU(x, c) },
			func(x float64) float64 {
				if x > 0 {
					return c.P*x*x + c.Beta*x
				}
				return c.N*(math.Expm1(math.Min(x, c.Eps))-x) + c.Beta*x
			}, 1e18})
	}
	return all
}

// functions checks each function on every value separately: near, which compares with the size of a
// row, would hide errors of its small values.
func functions(t *testing.T, b plan.Backend) {
	sizes := []float32{0, 1e-38, 1e-30, 1e-6, 1e-3, 0.1, 0.5, 1, 1.702, 2, 3, 4, 5, 7, 9, 20, 50, 87, 88, 89, 100, 104, 1e3, 1e6, 1e10, 1e18, 1e30, 3e38}
	values := make([]float32, 0, 2*len(sizes))
	for _, v := range sizes {
		values = append(values, v, -v)
	}
	rng := newRand(41)
	for len(values) < 8*31 {
		values = append(values, float32(rng.NormFloat64()*5))
	}
	for _, m := range mappings() {
		var rows [][]float32
		for at := 0; at < len(values); at += 31 { // rows of whole registers, and others
			row := append([]float32(nil), values[at:at+31]...)
			for i, v := range row {
				if math.Abs(float64(v)) > m.least {
					row[i] = 1
				}
			}
			rows = append(rows, row)
		}
		table := floatTable("table", rows...)
		p := single(t, table, m.node)
		got := outputs(t, b, p, []int32{0, 1, 2, 3, 4, 5, 6, 7}, tensor.F32, 16, 0)
		for r, row := range rows {
			for i, x := range row {
				want := m.f(float64(x))
				if d := math.Abs(float64(got[r][i]) - want); !(d <= 1e-5*math.Abs(want)+1e-6*math.Min(1, math.Abs(float64(x)))+1e-37) {
					t.Errorf("%s of %g is %g, want %g", m.name, x, got[r][i], want)
				}
			}
		}
		m.keepsNaN(t, b)
		m.between(t, b)
	}
}

// keepsNaN checks that NaN does not become a number.
func (m *mapping) keepsNaN(t *testing.T, b plan.Backend) {
	t.Helper()
	table := floatTable("table", []float32{1, 2, 3}, []float32{1, math.MaxFloat32, 2})
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
		infinite := b.Add(x, x)
		return m.node(b, b.Add(infinite, b.Scale(infinite, -1)))
	})
	r := runner(t, b, p, 2, 1, 2, plan.Limits{Cache: tensor.F32})
	r.Add([]int32{0}, 1)
	if err := r.Run(); err != nil {
		t.Errorf("%s: %v", m.name, err)
	}
	r.Add([]int32{0, 1}, 2)
	if err := r.Run(); !errors.Is(err, plan.ErrNotFinite) {
		t.Errorf("%s of NaN: error %v, want ErrNotFinite", m.name, err)
	}
}

// between runs the map between two products; a backend may fuse it with the first.
func (m *mapping) between(t *testing.T, b plan.Backend) {
	t.Helper()
	const d, ffn, tokens = 256, 288, 20
	for _, format := range longtest.Cases([]tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0, tensor.Q4_0}, []tensor.DType{tensor.F16, tensor.Q4_0}) {
		for _, activations := range []tensor.DType{tensor.F32, b.Rounds()} {
			rng := newRand(uint64(format))
			table := Weight(rng, "table", tensor.F32, 1, 31, d)
			up, down := Weight(rng, "up", format, 0.1, ffn, d), Weight(rng, "down", format, 0.1, d, ffn)
			bias := vector(rng, "bias", 0, 0.3, ffn)
			list := ids(rng, tokens, 31)
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				return b.Linear(m.node(b, b.Linear(x, up, bias)), down, nil)
			})
			in := func(x [][]float64) [][]float64 { return rounded(x, activations, format) }
			want := product(in(mapped(product(in(rowsOf(matrix(table), list)), matrix(up), matrix(bias)[0]), m.f)), matrix(down), nil)
			got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: activations}, 16, 0)
			if e := distance(got, want); !(e <= chained(activations, format)) {
				t.Errorf("%s between products of %v, %v activations: %.2g from the result in float64", m.name, format, activations, e)
			}
		}
	}
}

// glus checks GLUs with and without limits and shifts.
func glus(t *testing.T, b plan.Backend) {
	rng := newRand(43)
	table, other := Weight(rng, "table", tensor.F32, 4, 23, 65), Weight(rng, "other", tensor.F32, 0.5, 65, 65)
	column, heads := Weight(rng, "column", tensor.F32, 3, 23, 1), Weight(rng, "heads", tensor.F32, 3, 23, 5)
	list := ids(rng, 12, 23)
	x := rowsOf(matrix(table), list)
	y, c := product(x, matrix(other), nil), rowsOf(matrix(column), list)
	for _, act := range plan.Activations() {
		for _, a := range []plan.GLUAttr{{Act: act}, {Act: act, Limit: 7, Shift: 1}, {Act: act, Limit: 1.5}, {Act: act, Shift: -0.5}, {Act: act, Limit: 1.5, Late: true}} {
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.GLU(x, b.Linear(x, other, nil), a) })
			near(t, a.String(), outputs(t, b, p, list, tensor.F32, 16, 0), gated(x, y, a), 1e-5, 0)
			p = single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				return b.GLU(b.Embed(column), b.Linear(x, other, nil), a)
			})
			near(t, a.String()+", one column", outputs(t, b, p, list, tensor.F32, 16, 0), gated(c, y, a), 1e-5, 1)
			p = single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				return b.GLU(b.Embed(heads), b.Linear(x, other, nil), a)
			})
			near(t, a.String()+", five columns", outputs(t, b, p, list, tensor.F32, 16, 0), gated(rowsOf(matrix(heads), list), y, a), 1e-5, 1)
		}
	}

	// Between products a backend may fuse the GLU with them.
	const d, ffn = 256, 288
	wide := Weight(rng, "wide", tensor.F32, 1, 31, d)
	list = ids(rng, 20, 31)
	x = rowsOf(matrix(wide), list)
	for _, format := range longtest.Cases([]tensor.DType{tensor.F32, tensor.BF16, tensor.Q8_0, tensor.Q4_0}, []tensor.DType{tensor.BF16, tensor.Q8_0}) {
		gate, up, down := Weight(rng, "gate", format, 0.2, ffn, d), Weight(rng, "up", format, 0.2, ffn, d), Weight(rng, "down", format, 0.1, d, ffn)
		one := Weight(rng, "one", format, 0.1, 1, d)
		for _, activations := range []tensor.DType{tensor.F32, b.Rounds()} {
			for _, a := range []plan.GLUAttr{{Act: plan.SiLU}, {Act: plan.QuickGELU, Limit: 7, Shift: 1}, {Act: plan.Sigmoid}, {Act: plan.SiLU, Limit: 0.5, Late: true}} {
				in := func(x [][]float64) [][]float64 { return rounded(x, activations, format) }
				for _, g := range []*tensor.Tensor{gate, one} {
					p := single(t, wide, func(b *plan.Builder, x plan.Value) plan.Value {
						return b.Linear(b.GLU(b.Linear(x, g, nil), b.Linear(x, up, nil), a), down, nil)
					})
					want := product(in(gated(product(in(x), matrix(g), nil), product(in(x), matrix(up), nil), a)), matrix(down), nil)
					got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: activations}, 16, 0)
					if e := distance(got, want); !(e <= chained(activations, format)) {
						t.Errorf("%v of %d columns between products of %v, %v activations: %.2g from the result in float64", a, g.Rows(), format, activations, e)
					}
				}
			}
		}
	}
}

// A sequence of a program that is Whole cannot be cut.
func whole(t *testing.T, b plan.Backend) {
	table := Weight(newRand(44), "table", tensor.F32, 1, 9, 32)
	for name, op := range map[string]func(b *plan.Builder, x plan.Value) plan.Value{
		"bidirectional": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Pick(b.Bidirectional(x, x, x, plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 16, Scale: 0.2}))
		},
		"mean": func(b *plan.Builder, x plan.Value) plan.Value { return b.PickMean(x) },
	} {
		p := build(t, func(b *plan.Builder) {
			y := op(b, b.Embed(table))
			b.Output(y, y)
		})
		exe, err := b.Compile(context.Background(), p, LimitsFor(p, 8, 2, 8, 4, plan.Limits{Cache: tensor.F32}), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			first, tokens, length int32
			fails                 bool
		}{{0, 5, 5, false}, {0, 1, 1, false}, {0, 3, 5, true}, {3, 2, 5, true}, {1, 4, 4, true}} {
			batch := &plan.Batch{Start: []int32{0, c.tokens}, Lengths: []int32{c.length}, Tables: []plan.PageTable{}}
			for i := range c.tokens {
				batch.Tokens, batch.Positions = append(batch.Tokens, i), append(batch.Positions, c.first+i)
			}
			step, err := exe.Submit(batch)
			if c.fails != errors.Is(err, plan.ErrBatch) || !c.fails && err != nil {
				t.Errorf("%s: %d tokens from position %d of %d: error %v", name, c.tokens, c.first, c.length, err)
			}
			if err == nil {
				wait(t, step)
			}
		}
		if err := exe.Close(); err != nil {
			t.Error(err)
		}
	}
}
