package arch_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// Models are computed here in float64 by loops over their formulas, which share nothing with programs
// and their operations. A row is a token.
type formulas struct {
	t *testing.T
	f *modelfile.File
}

func formulasOf(t *testing.T, path string) formulas {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return formulas{t, f}
}

// vector returns the values of a tensor.
func (f formulas) vector(format string, a ...any) []float64 {
	f.t.Helper()
	name := fmt.Sprintf(format, a...)
	w, ok := f.f.Tensor(name)
	if !ok {
		f.t.Fatalf("no tensor %s", name)
	}
	values, err := w.Float32s()
	if err != nil {
		f.t.Fatal(err)
	}
	var all []float64
	for _, v := range values {
		all = append(all, float64(v))
	}
	return all
}

// has reports whether there is a tensor of that name.
func (f formulas) has(format string, a ...any) bool {
	_, ok := f.f.Tensor(fmt.Sprintf(format, a...))
	return ok
}

// rows returns the rows of a matrix.
func (f formulas) rows(format string, a ...any) [][]float64 {
	f.t.Helper()
	w, _ := f.f.Tensor(fmt.Sprintf(format, a...))
	values := f.vector(format, a...)
	return slices.Collect(slices.Chunk(values, w.Shape[len(w.Shape)-1]))
}

// linear returns W·x for each row x.
func (f formulas) linear(x [][]float64, format string, a ...any) [][]float64 {
	f.t.Helper()
	w := f.rows(format, a...)
	return each(x, func(x []float64) []float64 { return times(w, x) })
}

// each returns g of each row.
func each(x [][]float64, g func(row []float64) []float64) [][]float64 {
	var all [][]float64
	for _, row := range x {
		all = append(all, g(row))
	}
	return all
}

// both returns g of each pair of elements.
func both(x, y [][]float64, g func(a, b float64) float64) [][]float64 {
	all := make([][]float64, len(x))
	for t := range x {
		for i := range x[t] {
			all[t] = append(all[t], g(x[t][i], y[t][i]))
		}
	}
	return all
}

func plus(a, b float64) float64        { return a + b }
func sigmoid(x float64) float64        { return 1 / (1 + math.Exp(-x)) }
func siluOf(x float64) float64         { return x * sigmoid(x) }
func sigmoidGate(a, b float64) float64 { return sigmoid(a) * b }

func dotOf(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

func times(w [][]float64, x []float64) []float64 {
	var y []float64
	for _, row := range w {
		y = append(y, dotOf(row, x))
	}
	return y
}

// rootNorm divides each group of as many elements as w has by its root mean square.
func rootNorm(x, w []float64, eps float64) []float64 {
	var all []float64
	for group := range slices.Chunk(x, len(w)) {
		by := 1 / math.Sqrt(dotOf(group, group)/float64(len(w))+eps)
		for i, v := range group {
			all = append(all, v*by*w[i])
		}
	}
	return all
}

// turnHalves rotates the first dims elements of each head, as pairs of elements of its halves.
func turnHalves(x []float64, head, dims, pos int, base float64) []float64 {
	y := slices.Clone(x)
	for h := 0; h < len(x); h += head {
		for i := range dims / 2 {
			angle := float64(pos) * math.Pow(base, -2*float64(i)/float64(dims))
			a, b := x[h+i], x[h+i+dims/2]
			y[h+i], y[h+i+dims/2] = a*math.Cos(angle)-b*math.Sin(angle), b*math.Cos(angle)+a*math.Sin(angle)
		}
	}
	return y
}

// attendHeads is softmax attention of heads of dim elements to the last window tokens, or all if
// window is 0.
func attendHeads(q, k, v [][]float64, dim, window int, scale float64) [][]float64 {
	heads, shared := len(q[0])/dim, len(q[0])/len(k[0])
	y := make([][]float64, len(q))
	for t := range q {
		y[t] = make([]float64, len(q[t]))
		first := 0
		if window > 0 {
			first = max(0, t-window+1)
		}
		for h := range heads {
			g := h / shared * dim
			var scores []float64
			for i := first; i <= t; i++ {
				scores = append(scores, scale*dotOf(q[t][h*dim:(h+1)*dim], k[i][g:g+dim]))
			}
			for i, p := range softmaxOf(scores) {
				for j := range dim {
					y[t][h*dim+j] += p * v[first+i][g+j]
				}
			}
		}
	}
	return y
}

func softmaxOf(x []float64) []float64 {
	most, sum := slices.Max(x), 0.0
	var all []float64
	for _, v := range x {
		all = append(all, math.Exp(v-most))
		sum += math.Exp(v - most)
	}
	for i := range all {
		all[i] /= sum
	}
	return all
}

// best returns the indices of the n largest elements, the largest first.
func best(x []float64, n int) []int {
	var all []int
	for i := range x {
		all = append(all, i)
	}
	slices.SortStableFunc(all, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	return all[:n]
}

// feed is a gated feed-forward layer whose activation is SiLU, for one row.
func feed(gate, up, down [][]float64, x []float64) []float64 {
	h := times(gate, x)
	for i, u := range times(up, x) {
		h[i] = siluOf(h[i]) * u
	}
	return times(down, h)
}

// testTokens are tokens of a vocabulary of 32, more than a chunk of recurrent layers.
var testTokens = func() []int32 {
	var ids []int32
	for i := range 75 {
		ids = append(ids, int32((i*i+3*i)%32))
	}
	return ids
}()

// embedded returns the rows of a table.
func (f formulas) embedded(ids []int32, name string) [][]float64 {
	table := f.rows("%s", name)
	var x [][]float64
	for _, id := range ids {
		x = append(x, slices.Clone(table[id]))
	}
	return x
}

// computes checks that m computes those logits in float32.
func computes(t *testing.T, m *arch.Model, ids []int32, want [][]float64) {
	t.Helper()
	rounded := make([][]float32, len(want))
	for i := range want {
		for _, v := range want[i] {
			rounded[i] = append(rounded[i], float32(v))
		}
	}
	got := logitsOf(t, cpu.New(2), m.Program, ids, plan.Limits{Cache: tensor.F32})
	if rel := relative(got, rounded); !(rel < 2e-5) {
		t.Errorf("relative error %.3g", rel)
	}
}
