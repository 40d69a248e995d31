package plantest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// attentionTo attends to the keys and values that another node has stored in the same step and in
// earlier ones, with other parameters.
func attentionTo(t *testing.T, b plan.Backend) {
	for _, a := range []plan.AttentionAttr{
		{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2},
		{Heads: 4, KVHeads: 2, HeadDim: 32, ValueDim: 64, Scale: 0.2, Window: 7},
		{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2, Chunk: 13},
	} {
		const in, tokens = 64, 70
		rng := newRand(21)
		table := Weight(rng, "table", tensor.F32, 1, 101, in)
		weight := func(name string, rows int) *tensor.Tensor {
			return Weight(rng, name, tensor.F32, 0.1, rows, in)
		}
		other := a
		other.Heads, other.Scale = 2*a.Heads, 0.3
		wq, wq2 := weight("q", a.Heads*a.HeadDim), weight("q2", other.Heads*a.HeadDim)
		wk, wv := weight("k", a.KVHeads*a.HeadDim), weight("v", a.KVHeads*a.Values())
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.Values(), Window: a.Window, Chunk: a.Chunk})
			y := b.Attention(b.Linear(x, wq, nil), b.Linear(x, wk, nil), b.Linear(x, wv, nil), nil, st, a)
			z := b.AttentionTo(b.Linear(x, wq2, nil), nil, st, other)
			return b.Add(z, b.Linear(y, eye(b.Cols(z), b.Cols(y)), nil))
		})
		list := ids(rng, tokens, 101)
		x := rowsOf(matrix(table), list)
		k, v := product(x, matrix(wk), nil), product(x, matrix(wv), nil)
		want := attended(product(x, matrix(wq2), nil), k, v, nil, &other)
		for i, row := range attended(product(x, matrix(wq), nil), k, v, nil, &a) {
			for j, y := range row {
				want[i][j] += y
			}
		}
		r := runner(t, b, p, 64, 1, 100, plan.Limits{Cache: tensor.F32, Activations: tensor.F32})
		for _, chunk := range []int{64, 7, 1} {
			s := r.Add(list, chunk)
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("%v in steps of %d", a, chunk), s.Logits, want, 1e-5, 0)
			r.Drop(s)
		}
	}
}

// eye returns a matrix that copies its input to the first rows of its output.
func eye(rows, cols int) *tensor.Tensor {
	w := Weight(newRand(1), "eye", tensor.F32, 1, rows, cols)
	clear(w.Data)
	for i := range min(rows, cols) {
		one := math.Float32bits(1)
		for j := range 4 {
			w.Data[4*(i*cols+i)+j] = byte(one >> (8 * j))
		}
	}
	return w
}

// embedPart reads parts of the rows of a second table, which has fewer rows than the vocabulary.
func embedPart(t *testing.T, b plan.Backend) {
	for _, d := range Dtypes {
		block := d.BlockLen()
		rng := newRand(22)
		table, second := Weight(rng, "table", tensor.F32, 1, 40, block), Weight(rng, "second", d, 1, 30, 3*block)
		list := ids(rng, 50, 40)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Add(x, b.EmbedPart(second, block, block))
		})
		want, rows := rowsOf(matrix(table), list), matrix(second)
		for i, id := range list {
			if id >= 30 {
				id = 0
			}
			row := make([]float64, block)
			for j := range row {
				row[j] = want[i][j] + rows[id][block+j]
			}
			want[i] = row
		}
		near(t, d.String(), outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-6, 0)
	}
}

// mul multiplies values, and rows by a column.
func mul(t *testing.T, b plan.Backend) {
	rng := newRand(23)
	table := Weight(rng, "table", tensor.F32, 1, 23, 65)
	wide, narrow := Weight(rng, "wide", tensor.F32, 0.2, 65, 65), Weight(rng, "narrow", tensor.F32, 0.2, 1, 65)
	list := ids(rng, 12, 23)
	x := rowsOf(matrix(table), list)
	for _, w := range []*tensor.Tensor{wide, narrow} {
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Mul(b.Linear(x, w, nil), x) })
		y := product(x, matrix(w), nil)
		want := make([][]float64, len(x))
		for i := range x {
			for j, v := range x[i] {
				want[i] = append(want[i], v*y[i][j%len(y[i])])
			}
		}
		near(t, w.Name, outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-5, 0)
	}
	by := vector(rng, "by", 1, 0.5, 65)
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.MulBy(x, by) })
	want := make([][]float64, len(x))
	for i := range x {
		for j, v := range x[i] {
			want[i] = append(want[i], v*matrix(by)[0][j])
		}
	}
	near(t, "by a weight", outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-5, 0)
}

// mix adds three values by columns that are not the first ones.
func mix(t *testing.T, b plan.Backend) {
	rng := newRand(25)
	table, c := Weight(rng, "table", tensor.F32, 1, 23, 65), Weight(rng, "c", tensor.F32, 0.3, 5, 65)
	weights := []*tensor.Tensor{Weight(rng, "0", tensor.F32, 0.2, 65, 65), Weight(rng, "1", tensor.F32, 0.2, 65, 65)}
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
		return b.Mix(b.Linear(x, c, nil), 2, x, b.Linear(x, weights[0], nil), b.Linear(x, weights[1], nil))
	})
	list := ids(rng, 12, 23)
	x := rowsOf(matrix(table), list)
	by, values := product(x, matrix(c), nil), [][][]float64{x, product(x, matrix(weights[0]), nil), product(x, matrix(weights[1]), nil)}
	want := make([][]float64, len(x))
	for i := range x {
		want[i] = make([]float64, 65)
		for k, v := range values {
			for j := range want[i] {
				want[i][j] += by[i][2+k] * v[i][j]
			}
		}
	}
	near(t, "mix", outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-5, 0)
}

// rescale gives rows the sizes of others; one row is zeros.
func rescale(t *testing.T, b plan.Backend) {
	rng := newRand(26)
	table, w := Weight(rng, "table", tensor.F32, 3, 23, 65), Weight(rng, "w", tensor.F32, 0.01, 65, 65)
	clear(table.Row(5))
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Rescale(b.Linear(x, w, nil), x, 1e-5) })
	size := func(x []float64) (sum float64) {
		for _, v := range x {
			sum += v * v
		}
		return sum / float64(len(x))
	}
	list := append(ids(rng, 12, 23), 5)
	x := rowsOf(matrix(table), list)
	want := product(x, matrix(w), nil)
	for i, row := range want {
		by := math.Sqrt(size(x[i])) / math.Sqrt(max(size(row), 1e-5))
		for j := range row {
			row[j] *= by
		}
	}
	near(t, "rescale", outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-5, 0)
}

// sparsify keeps few elements of a row, or most.
func sparsify(t *testing.T, b plan.Backend) {
	rng := newRand(27)
	table := Weight(rng, "table", tensor.F32, 3, 23, 130)
	list := ids(rng, 12, 23)
	for _, by := range []float64{1.6448536, -0.5, 0} {
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Sparsify(x, by) })
		want := rowsOf(matrix(table), list)
		for i, row := range want {
			mean, variance := 0.0, 0.0
			for _, v := range row {
				mean += v / float64(len(row))
			}
			for _, v := range row {
				variance += (v - mean) * (v - mean) / float64(len(row))
			}
			want[i] = nil
			for _, v := range row {
				want[i] = append(want[i], max(0, v-mean-by*math.Sqrt(variance)))
			}
		}
		near(t, fmt.Sprint(by), outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-5, 0)
	}
}

// spreadColumns moves columns to other places, or to their own, and leaves the others absent.
func spreadColumns(t *testing.T, b plan.Backend) {
	rng := newRand(28)
	table := Weight(rng, "table", tensor.F32, 3, 23, 5)
	list := ids(rng, 12, 23)
	for _, places := range [][]int32{{6, 0, 1, 3, 8}, {0, 1, 2, 3, 4}} {
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Spread(x, places, 9) })
		supported(t, b, p, LimitsFor(p, 12, 1, 16, 12, plan.Limits{Cache: tensor.F32}))
		want := rowsOf(matrix(table), list)
		for i, row := range want {
			want[i] = slices.Repeat([]float64{float64(float32(plan.Absent))}, 9)
			for k, place := range places {
				want[i][place] = row[k]
			}
		}
		near(t, fmt.Sprint(places), outputs(t, b, p, list, tensor.F32, 16, 0), want, 0, 0)
	}
}

// temper scales rows by their positions.
func temper(t *testing.T, b plan.Backend) {
	rng := newRand(24)
	table := Weight(rng, "table", tensor.F32, 1, 23, 65)
	list := ids(rng, 40, 23)
	for _, a := range []plan.TemperAttr{{By: 0.1, Every: 16, Shift: 1}, {By: 0.7, Every: 1}, {By: -0.2, Every: 7}} {
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Temper(x, a) })
		want := make([][]float64, len(list))
		for i, row := range rowsOf(matrix(table), list) {
			for _, v := range row {
				want[i] = append(want[i], v*(1+a.By*math.Log(1+math.Floor(float64(i+a.Shift)/float64(a.Every)))))
			}
		}
		near(t, a.String(), outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-6, 0)
	}
}
