// Package plantest tests backends. It compares each operation, for each dtype, with plain float64
// on small inputs. It checks that the bits of whole programs do not depend on how a sequence is cut
// into steps or on the other sequences in them. A backend's test is one call of [All].
package plantest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/tensor"
)

// A test of the suite.
type suiteTest struct {
	name string
	run  func(t *testing.T, b plan.Backend)
}

var suite = []suiteTest{
	{"Embed", embed},
	{"EmbedPart", embedPart},
	{"Input", inputs},
	{"InputMalformed", inputsMalformed},
	{"Position", position},
	{"Axes", axes},
	{"Linear", linear},
	{"HeadLinear", headLinear},
	{"Products", products},
	{"MixedFormats", mixedFormats},
	{"Derived", derived},
	{"RMSNorm", rmsNorm},
	{"RMSNormHeads", rmsNormHeads},
	{"LayerNorm", layerNorm},
	{"LayerNormHeads", layerNormHeads},
	{"Rope", rope},
	{"RopeEnds", ropeEnds},
	{"Attention", attention},
	{"Latent", latent},
	{"LatentRows", latentRows},
	{"LatentBits", latentBits},
	{"Select", selected},
	{"Sparse", sparse},
	{"Compress", compress},
	{"Compressed", compressed},
	{"Connect", connect},
	{"AttentionTo", attentionTo},
	{"Bidirectional", bidirectional},
	{"Conv", conv},
	{"Convs", convs},
	{"Scan", scan},
	{"LRU", lru},
	{"StateSpace", stateSpace},
	{"Delta", delta},
	{"Elementwise", elementwise},
	{"Chains", chains},
	{"Concat", concat},
	{"Map", functions},
	{"GLU", glus},
	{"Mul", mul},
	{"Temper", temper},
	{"Mix", mix},
	{"Rescale", rescale},
	{"Sparsify", sparsify},
	{"Spread", spreadColumns},
	{"Recall", recalled},
	{"Heads", heads},
	{"HeadsOfTheFirst", headsOfTheFirst},
	{"HeadsObserved", headsObserved},
	{"Experts", experts},
	{"Pick", pick},
	{"PickMean", pickMean},
	{"Whole", whole},
	{"SameBits", sameBits},
	{"Prefixes", prefixes},
	{"Several", several},
	{"States", states},
	{"HostMemory", hostMemory},
	{"OnlyStates", onlyStates},
	{"Sampling", sampling},
	{"Choices", choices},
	{"Masks", masks},
	{"LateMasks", lateMasks},
	{"NoChoice", noChoice},
	{"Layers", layers},
	{"Timed", timed},
	{"Spans", spans},
	{"Observed", observed},
	{"NotFinite", notFinite},
	{"NotFiniteReused", notFiniteReused},
	{"NotFiniteExperts", notFiniteExperts},
	{"Malformed", malformed},
}

// All runs the suite. Where long tests do not run, it takes fewer shapes, and sizes and formats in
// fewer combinations; see package longtest.
func All(t *testing.T, b plan.Backend) { Except(t, b) }

// Except runs the suite without the tests of the given names.
func Except(t *testing.T, b plan.Backend, names ...string) {
	for _, c := range suite {
		if !slices.Contains(names, c.name) {
			t.Run(c.name, func(t *testing.T) { c.run(t, b) })
		}
	}
}

// Some runs the tests of the suite with the given names.
func Some(t *testing.T, b plan.Backend, names ...string) {
	for _, name := range names {
		i := slices.IndexFunc(suite, func(c suiteTest) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("the suite has no test %s", name)
		}
		t.Run(name, func(t *testing.T) { suite[i].run(t, b) })
	}
}

// Dtypes are the formats of weights that every backend must run: all of them.
var Dtypes = func() (all []tensor.DType) {
	for _, f := range tensor.Formats() {
		if f.DType.Weight() {
			all = append(all, f.DType)
		}
	}
	return all
}()

// Weight returns a random tensor with values of about scale. Quantized tensors have random blocks.
func Weight(rng *rand.Rand, name string, d tensor.DType, scale float64, shape ...int) *tensor.Tensor {
	n, err := tensor.Elems(shape)
	if err != nil {
		panic(err)
	}
	size, err := d.Size(n)
	if err != nil {
		panic(err)
	}
	w := &tensor.Tensor{Name: name, DType: d, Shape: shape, Data: make([]byte, size)}
	if n > 0 {
		f, err := random.NewFiller(rng.Uint64(), d, 0, scale)
		if err != nil {
			panic(err)
		}
		f.Fill(w.Data, 0)
	}
	return w
}

// vector returns a random F32 vector of values about mean.
func vector(rng *rand.Rand, name string, mean, scale float64, n int) *tensor.Tensor {
	w := Weight(rng, name, tensor.F32, scale, n)
	for i := range n {
		v := math.Float32frombits(binary.LittleEndian.Uint32(w.Data[4*i:])) + float32(mean)
		binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(v))
	}
	return w
}

// matrix returns w's rows in float64.
func matrix(w *tensor.Tensor) [][]float64 {
	values, err := w.Float32s()
	if err != nil {
		panic(err)
	}
	rows, all := make([][]float64, w.Rows()), make([]float64, len(values))
	for i, v := range values {
		all[i] = float64(v)
	}
	for i := range rows {
		rows[i] = all[i*w.Cols() : (i+1)*w.Cols()]
	}
	return rows
}

// eachRow returns f of every row of x. Tokens with the same id share a row, of which f is computed
// once.
func eachRow(x [][]float64, f func(row []float64) []float64) [][]float64 {
	y, known := make([][]float64, len(x)), map[*float64][]float64{}
	for i, row := range x {
		at := unsafe.SliceData(row)
		if known[at] == nil {
			known[at] = f(row)
		}
		y[i] = known[at]
	}
	return y
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// ids returns n random tokens of a vocabulary.
func ids(rng *rand.Rand, n, vocab int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(rng.IntN(vocab))
	}
	return list
}

func build(t *testing.T, f func(b *plan.Builder)) *plan.Program {
	t.Helper()
	p, err := plan.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outputs runs tokens, one per row of x's values, through a program whose input is table x. It
// returns every token's output row.
func outputs(t *testing.T, b plan.Backend, p *plan.Program, tokens []int32, cache tensor.DType, pageTokens, length int) [][]float32 {
	t.Helper()
	return outputsWith(t, b, p, tokens, plan.Limits{Cache: cache}, pageTokens, length)
}

func outputsWith(t *testing.T, b plan.Backend, p *plan.Program, tokens []int32, base plan.Limits, pageTokens, length int) [][]float32 {
	t.Helper()
	r, err := NewRunner(b, p, LimitsFor(p, len(tokens), 1, len(tokens), pageTokens, base))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	s := r.Add(tokens, len(tokens))
	s.Prompt = length
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	return s.Logits
}

// inSteps runs the sequences side by side, for each of the chunkings in steps of so many tokens of each,
// and compares their logits with those that want returns; see [near].
func inSteps(t *testing.T, r *Runner, what string, lists [][]int32, chunkings [][]int, tol, least float64, want func(list []int32) [][]float64) {
	t.Helper()
	for _, chunks := range chunkings {
		var seqs []*Seq
		for i, list := range lists {
			seqs = append(seqs, r.Add(list, chunks[i]))
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		for i, s := range seqs {
			near(t, fmt.Sprintf("%s, sequence %d in steps of %v", what, i, chunks), s.Logits, want(lists[i]), tol, least)
			r.Drop(s)
		}
	}
}

// near fails unless every value is within tol times the size of its row. A row's size counts as at
// least least, because sums may cancel.
func near(t *testing.T, what string, got [][]float32, want [][]float64, tol, least float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("%s: row %d has %d values, want %d", what, i, len(got[i]), len(want[i]))
		}
		size := least
		for _, v := range want[i] {
			size = max(size, math.Abs(v))
		}
		for j, v := range want[i] {
			if d := math.Abs(float64(got[i][j]) - v); !(d <= tol*size+1e-30) {
				t.Fatalf("%s: row %d, column %d: %v, want %v", what, i, j, got[i][j], v)
			}
		}
	}
}

// single returns a program of one operation on the rows of a table.
func single(t *testing.T, table *tensor.Tensor, op func(b *plan.Builder, x plan.Value) plan.Value) *plan.Program {
	t.Helper()
	return build(t, func(b *plan.Builder) {
		y := b.Pick(op(b, b.Embed(table)))
		b.Output(y, y)
	})
}

func rowsOf(m [][]float64, tokens []int32) [][]float64 {
	var rows [][]float64
	for _, id := range tokens {
		rows = append(rows, m[id])
	}
	return rows
}

func embed(t *testing.T, b plan.Backend) {
	for _, d := range Dtypes {
		rng := newRand(uint64(d))
		table := Weight(rng, "table", d, 1, 37, 256)
		tokens := ids(rng, 9, 37)
		p := single(t, table, func(_ *plan.Builder, x plan.Value) plan.Value { return x })
		near(t, d.String(), outputs(t, b, p, tokens, tensor.F32, 16, 0), rowsOf(matrix(table), tokens), 0, 0)
		if d.Format().Planes == nil {
			continue
		}
		// A table that is also the head may be kept in another layout.
		tied := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, table, nil) })
		got := outputsWith(t, b, tied, tokens, plan.Limits{Cache: tensor.F32, Activations: b.Rounds()}, 16, 0)
		promised(t, d.String()+", tied", got, rowsOf(matrix(table), tokens), table, nil, b.Rounds())
	}
}

// product computes x·wᵀ + bias in float64.
func product(x, w [][]float64, bias []float64) [][]float64 {
	return eachRow(x, func(row []float64) []float64 {
		y := make([]float64, len(w))
		for o, weights := range w {
			sum := 0.0
			for k, v := range weights[:len(row)] {
				sum += v * row[k]
			}
			if y[o] = sum; bias != nil {
				y[o] += bias[o]
			}
		}
		return y
	})
}

func linear(t *testing.T, b plan.Backend) {
	for _, d := range Dtypes {
		lengths := []int{d.BlockLen(), 2 * d.BlockLen(), 768}
		if !d.Quantized() {
			lengths = []int{1, 3, 4, 5, 255, 256, 257, 1023}
		}
		for _, k := range lengths {
			for _, rows := range longtest.Cases([]int{1, 7, 40}, []int{7}) {
				rng := newRand(uint64(k*100 + rows))
				table := Weight(rng, "table", tensor.F32, 1, 19, k)
				w := Weight(rng, "w", d, 0.5, rows, k)
				bias := vector(rng, "bias", 0, 1, rows)
				tokens := ids(rng, 5, 19)
				x := rowsOf(matrix(table), tokens)
				what := fmt.Sprintf("%v %d x %d", d, rows, k)
				p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, nil) })
				near(t, what, outputs(t, b, p, tokens, tensor.F32, 16, 0), product(x, matrix(w), nil), 1e-5, math.Sqrt(float64(k)))
				p = single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Linear(x, w, bias) })
				near(t, what+" + bias", outputs(t, b, p, tokens, tensor.F32, 16, 0), product(x, matrix(w), matrix(bias)[0]), 1e-5, math.Sqrt(float64(k)))
			}
		}
	}
}

func normalized(x [][]float64, w []float64, eps float64) [][]float64 {
	y := make([][]float64, len(x))
	for i := range x {
		y[i] = make([]float64, len(x[i]))
		for g := 0; g < len(x[i]); g += len(w) {
			sum := 0.0
			for _, v := range x[i][g : g+len(w)] {
				sum += v * v
			}
			for j := range w {
				y[i][g+j] = x[i][g+j] / math.Sqrt(sum/float64(len(w))+eps) * w[j]
			}
		}
	}
	return y
}

func rmsNorm(t *testing.T, b plan.Backend) {
	for _, c := range []struct{ group, cols int }{{1, 264}, {8, 264}, {33, 264}, {264, 264}, {3076, 3076}, {5120, 5120}, {8448, 8448}} {
		group := c.group
		for _, scale := range []float64{1e-4, 1, 1e4} {
			rng := newRand(uint64(group))
			table := Weight(rng, "table", tensor.F32, scale, 11, c.cols)
			w := vector(rng, "w", 1, 0.3, group)
			tokens := ids(rng, 6, 11)
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.RMSNorm(x, w, 1e-5) })
			want := normalized(rowsOf(matrix(table), tokens), matrix(w)[0], 1e-5)
			near(t, fmt.Sprintf("groups of %d about %g", group, scale), outputs(t, b, p, tokens, tensor.F32, 16, 0), want, 1e-6, 0)
		}
	}
}

func concat(t *testing.T, b plan.Backend) {
	for _, c := range [][2]int{{1, 1}, {33, 7}, {32, 64}} {
		rng := newRand(uint64(c[0]))
		x, y := Weight(rng, "x", tensor.F32, 1, 11, c[0]), Weight(rng, "y", tensor.F32, 1, 11, c[1])
		tokens := ids(rng, 6, 11)
		var want [][]float64
		for _, id := range tokens {
			want = append(want, slices.Concat(matrix(x)[id], matrix(y)[id]))
		}
		p := single(t, x, func(b *plan.Builder, v plan.Value) plan.Value { return b.Concat(v, b.Embed(y)) })
		near(t, fmt.Sprint(c), outputs(t, b, p, tokens, tensor.F32, 16, 0), want, 0, 0)
	}
}

func rmsNormHeads(t *testing.T, b plan.Backend) {
	for _, c := range []struct{ heads, dim int }{{1, 264}, {3, 88}, {8, 33}, {66, 4}} {
		rng := newRand(uint64(c.dim))
		table := Weight(rng, "table", tensor.F32, 1, 11, c.heads*c.dim)
		w := vector(rng, "w", 1, 0.3, c.heads*c.dim)
		tokens := ids(rng, 6, 11)
		var even []float64
		for range c.dim {
			even = append(even, 1)
		}
		want := normalized(rowsOf(matrix(table), tokens), even, 1e-5)
		for _, row := range want {
			for i, v := range matrix(w)[0] {
				row[i] *= v
			}
		}
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.RMSNormHeads(x, w, c.dim, 1e-5) })
		near(t, fmt.Sprintf("%d heads of %d", c.heads, c.dim), outputs(t, b, p, tokens, tensor.F32, 16, 0), want, 1e-6, 0)
	}
}

func layerNorm(t *testing.T, b plan.Backend) {
	for _, group := range []int{1, 8, 33, 264} {
		for _, c := range []struct{ mean, scale float64 }{{0, 1e-4}, {0.5, 1}, {-3e4, 1e4}, {1000, 1}} {
			rng := newRand(uint64(group))
			table := Weight(rng, "table", tensor.F32, c.scale, 11, 264)
			for i := range 11 {
				copy(table.Data[4*264*i:], vector(rng, "row", c.mean, c.scale, 264).Data)
			}
			w, bias := vector(rng, "w", 1, 0.3, group), vector(rng, "bias", 0, 0.5, group)
			tokens := ids(rng, 6, 11)
			x, m, zero := rowsOf(matrix(table), tokens), matrix(w)[0], make([]float64, group)
			what := fmt.Sprintf("groups of %d about %g", group, c.mean)
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.LayerNorm(x, w, bias, 1e-5) })
			near(t, what, outputs(t, b, p, tokens, tensor.F32, 16, 0), centered(x, m, matrix(bias)[0], 1e-5), 1e-6, 0)
			p = single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.LayerNorm(x, w, nil, 1e-5) })
			near(t, what+" without a bias", outputs(t, b, p, tokens, tensor.F32, 16, 0), centered(x, m, zero, 1e-5), 1e-6, 0)
		}
	}
}

func layerNormHeads(t *testing.T, b plan.Backend) {
	for _, c := range []struct{ heads, dim int }{{1, 264}, {3, 88}, {8, 33}, {66, 4}} {
		rng := newRand(uint64(c.dim))
		table := Weight(rng, "table", tensor.F32, 1, 11, c.heads*c.dim)
		w, bias := vector(rng, "w", 1, 0.3, c.heads*c.dim), vector(rng, "bias", 0, 0.5, c.heads*c.dim)
		tokens := ids(rng, 6, 11)
		x, m, zero := rowsOf(matrix(table), tokens), matrix(w)[0], make([]float64, c.heads*c.dim)
		what := fmt.Sprintf("%d heads of %d", c.heads, c.dim)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.LayerNormHeads(x, w, bias, c.dim, 1e-5) })
		near(t, what, outputs(t, b, p, tokens, tensor.F32, 16, 0), centeredBy(x, m, matrix(bias)[0], c.dim, 1e-5), 1e-6, 0)
		p = single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.LayerNormHeads(x, w, nil, c.dim, 1e-5) })
		near(t, what+" without a bias", outputs(t, b, p, tokens, tensor.F32, 16, 0), centeredBy(x, m, zero, c.dim, 1e-5), 1e-6, 0)
	}
}

// centered computes layer normalization in float64.
func centered(x [][]float64, w, bias []float64, eps float64) [][]float64 {
	return centeredBy(x, w, bias, len(w), eps)
}

// centeredBy computes layer normalization of groups; w and bias hold the weights of all groups of a
// row.
func centeredBy(x [][]float64, w, bias []float64, group int, eps float64) [][]float64 {
	y := make([][]float64, len(x))
	for i := range x {
		for g := 0; g < len(x[i]); g += group {
			mean, squares := 0.0, 0.0
			for _, v := range x[i][g : g+group] {
				mean += v / float64(group)
			}
			for _, v := range x[i][g : g+group] {
				squares += (v - mean) * (v - mean)
			}
			for j := g; j < g+group; j++ {
				y[i] = append(y[i], (x[i][j]-mean)/math.Sqrt(squares/float64(group)+eps)*w[j%len(w)]+bias[j%len(w)])
			}
		}
	}
	return y
}

// turned returns x with the heads of every row rotated by their positions.
func turned(x [][]float64, a *plan.RopeAttr, freqs func(pos int) []float64) [][]float64 {
	y := make([][]float64, len(x))
	for pos := range x {
		y[pos] = append([]float64(nil), x[pos]...)
		for h := a.First; h < len(x[pos]); h += a.HeadDim {
			for i, f := range freqs(pos) {
				p, q := h+i, h+i+a.Dims/2
				if a.Interleaved {
					p, q = h+2*i, h+2*i+1
				}
				sin, cos := math.Sincos(float64(pos+a.Shift) * f)
				u, v := x[pos][p], x[pos][q]
				y[pos][p], y[pos][q] = (u*cos-v*sin)*a.Scale, (u*sin+v*cos)*a.Scale
			}
		}
	}
	return y
}

func powers(base float64, dims int) []float64 {
	var f []float64
	for i := range dims / 2 {
		f = append(f, math.Pow(base, -2*float64(i)/float64(dims)))
	}
	return f
}

func rope(t *testing.T, b plan.Backend) {
	const headDim, heads, tokens = 16, 3, 40
	plain := func(a *plan.RopeAttr) func(int) []float64 { return func(int) []float64 { return a.Freqs } }
	long := powers(50, headDim)
	for _, c := range []struct {
		name   string
		attr   plan.RopeAttr
		length int // length of the prompt
		freqs  func(*plan.RopeAttr) func(int) []float64
	}{
		{"halves", plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), Scale: 1}, 0, plain},
		{"neighbours", plan.RopeAttr{HeadDim: headDim, Dims: headDim, Interleaved: true, Freqs: powers(1e4, headDim), Scale: 1}, 0, plain},
		{"part of a head", plan.RopeAttr{HeadDim: headDim, Dims: 6, Freqs: powers(100, 6), Scale: 1}, 0, plain},
		{"part, neighbours", plan.RopeAttr{HeadDim: headDim, Dims: 6, Interleaved: true, Freqs: powers(100, 6), Scale: 1}, 0, plain},
		{"scaled", plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), Scale: 1.3}, 0, plain},
		{"long prompt", plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), LongFreqs: long, LongFrom: 20, Scale: 1}, 0,
			func(*plan.RopeAttr) func(int) []float64 { return func(int) []float64 { return long } }},
		{"short prompt, long answer", plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), LongFreqs: long, LongFrom: 20, Scale: 1}, 10,
			func(a *plan.RopeAttr) func(int) []float64 {
				return func(pos int) []float64 {
					if pos+1 > 20 {
						return long
					}
					return a.Freqs
				}
			}},
		{"dynamic", plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), LongFrom: 16, Dynamic: &plan.DynamicNTK{Base: 1e4, Factor: 2}, Scale: 1}, 10,
			func(*plan.RopeAttr) func(int) []float64 {
				return func(pos int) []float64 {
					return powers(1e4*math.Pow(2*float64(max(16, pos+1))/16-1, float64(headDim)/(headDim-2)), headDim)
				}
			}},
	} {
		rng := newRand(5)
		table := Weight(rng, "table", tensor.F32, 1, 50, heads*headDim)
		list := ids(rng, tokens, 50)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Rope(x, c.attr) })
		want := turned(rowsOf(matrix(table), list), &c.attr, c.freqs(&c.attr))
		near(t, c.name, outputs(t, b, p, list, tensor.F32, 16, c.length), want, 1e-6, 0)
	}
}

// attended computes plain softmax attention in float64 over a sequence. sinks is [Heads] or nil.
func attended(q, k, v [][]float64, sinks []float64, a *plan.AttentionAttr) [][]float64 {
	seen := make([][]float64, len(q))
	for t := range q {
		first := 0
		if a.Window > 0 {
			first = max(0, t-a.Window+1)
		}
		if a.Chunk > 0 {
			first = t / a.Chunk * a.Chunk
		}
		for p := first; p <= t; p++ {
			seen[t] = append(seen[t], float64(p))
		}
	}
	return attendedAt(q, k, v, sinks, a, seen)
}

// attendedAt is attended to the positions in seen, which end at a negative number.
func attendedAt(q, k, v [][]float64, sinks []float64, a *plan.AttentionAttr, seen [][]float64) [][]float64 {
	out := make([][]float64, len(q))
	for t := range q {
		out[t] = make([]float64, a.Heads*a.Values())
		list := seen[t]
		if end := slices.IndexFunc(list, func(p float64) bool { return p < 0 }); end >= 0 {
			list = list[:end]
		}
		for h := range a.Heads {
			head := h * a.KVHeads / a.Heads
			g := head * a.HeadDim
			var weights []float64
			sum := 0.0
			if sinks != nil {
				sum = math.Exp(sinks[h])
			}
			for _, p := range list {
				s := 0.0
				for i := range a.HeadDim {
					s += q[t][h*a.HeadDim+i] * k[int(p)][g+i]
				}
				if s *= a.Scale; a.Softcap > 0 {
					s = a.Softcap * math.Tanh(s/a.Softcap)
				}
				weights = append(weights, math.Exp(s))
				sum += weights[len(weights)-1]
			}
			for i, p := range list {
				for j := range a.Values() {
					out[t][h*a.Values()+j] += weights[i] / sum * v[int(p)][head*a.Values()+j]
				}
			}
		}
	}
	return out
}

func attention(t *testing.T, b plan.Backend) {
	// Sinks may have any format.
	formats := map[tensor.DType]tensor.DType{tensor.F32: tensor.F32, tensor.F16: tensor.F16, tensor.Q8_0: tensor.BF16, tensor.F8_E4M3: tensor.F32}
	for i, c := range []struct {
		attr       plan.AttentionAttr
		sinks      bool
		tokens     int
		pageTokens int
	}{
		{plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 8, Scale: 0.35}, false, 5, 16},
		{plan.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 8, Scale: 0.35}, false, 33, 1},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 12, Scale: 0.3}, false, 40, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 8, Scale: 0.35, Window: 1}, false, 20, 16},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 8, Scale: 0.35, Window: 7}, false, 40, 4},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 4, Scale: 0.5}, false, 700, 16},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 4, Scale: 0.5, Window: 300}, false, 700, 24},
		{plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 1, Scale: 1}, false, 19, 3},
		{plan.AttentionAttr{Heads: 3, KVHeads: 1, HeadDim: 17, Scale: 0.25}, false, 37, 32},
		{plan.AttentionAttr{Heads: 5, KVHeads: 1, HeadDim: 33, Scale: 0.2, Window: 30}, false, 70, 5},
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 64, Scale: 0.125}, false, 70, 32},
		{plan.AttentionAttr{Heads: 7, KVHeads: 1, HeadDim: 64, Scale: 0.125}, false, 20, 1},
		{plan.AttentionAttr{Heads: 6, KVHeads: 1, HeadDim: 80, Scale: 0.11}, false, 35, 16},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 96, Scale: 0.1, Window: 20}, false, 50, 32},
		{plan.AttentionAttr{Heads: 8, KVHeads: 1, HeadDim: 128, Scale: 0.09}, false, 40, 16},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 256, Scale: 0.06}, false, 17, 4},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.2}, false, 530, 32},
		{plan.AttentionAttr{Heads: 40, KVHeads: 1, HeadDim: 32, Scale: 0.2}, false, 6, 32},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 8, Scale: 0.35, Softcap: 0.7}, false, 40, 4},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.5, Softcap: 50}, false, 530, 32},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 12, Scale: 0.3}, true, 40, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 32, Scale: 0.2}, true, 530, 32},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2, Softcap: 0.7, Window: 7}, true, 40, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2, Softcap: 1.5, Window: 300}, true, 600, 24},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 64, Scale: 0.125, Window: 1}, true, 20, 16},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 24, ValueDim: 16, Scale: 0.2}, true, 40, 4},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 17, ValueDim: 33, Scale: 0.2, Window: 30}, false, 70, 5},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.1}, true, 530, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 32, ValueDim: 128, Scale: 0.2, Window: 300}, false, 700, 32},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 8, Scale: 0.35, Chunk: 1}, false, 20, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2, Chunk: 7}, true, 70, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.2, Softcap: 2, Chunk: 100}, false, 530, 24},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.2, Chunk: 300}, true, 700, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.2, Chunk: 256}, false, 600, 32},
	} {
		at := i % len(Caches)
		for _, cache := range longtest.Cases(Caches, Caches[at:at+1]) {
			if unit := plan.HeadUnit(cache); c.attr.HeadDim%unit != 0 || c.attr.Values()%unit != 0 {
				continue
			}
			rng := newRand(uint64(c.tokens))
			a := c.attr
			in := min(a.Heads*a.HeadDim, 256)
			table := Weight(rng, "table", tensor.F32, 1, 101, in)
			size := 0.3 * math.Sqrt(8/float64(in))
			wq := Weight(rng, "q", tensor.F32, 1/math.Sqrt(float64(in)), a.Heads*a.HeadDim, in)
			wk := Weight(rng, "k", tensor.F32, size, a.KVHeads*a.HeadDim, in)
			wv := Weight(rng, "v", tensor.F32, size, a.KVHeads*a.Values(), in)
			list := ids(rng, c.tokens, 101)
			var sinks *tensor.Tensor
			var logits []float64
			if c.sinks {
				sinks = Weight(rng, "sinks", formats[cache], 2, a.Heads)
				logits = matrix(sinks)[0]
			}
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.Values(), Window: a.Window, Chunk: a.Chunk})
				return b.Attention(b.Linear(x, wq, nil), b.Linear(x, wk, nil), b.Linear(x, wv, nil), sinks, st, a)
			})
			x := rowsOf(matrix(table), list)
			want := attended(product(x, matrix(wq), nil), kept(product(x, matrix(wk), nil), a.KVHeads, cache), kept(product(x, matrix(wv), nil), a.KVHeads, cache), logits, &a)
			near(t, fmt.Sprintf("%v, sinks %.3g, %d tokens, %v cache in pages of %d", a, logits, c.tokens, cache, c.pageTokens),
				outputs(t, b, p, list, cache, c.pageTokens, 0), want, tolerances[cache], 0)
		}
	}
}

func elementwise(t *testing.T, b plan.Backend) {
	rng := newRand(3)
	table := Weight(rng, "table", tensor.F32, 4, 23, 65)
	other := Weight(rng, "other", tensor.F32, 0.2, 65, 65)
	list := ids(rng, 12, 23)
	x := rowsOf(matrix(table), list)
	y := product(x, matrix(other), nil)
	sum := make([][]float64, len(x))
	for i := range x {
		for j := range x[i] {
			sum[i] = append(sum[i], x[i][j]+y[i][j])
		}
	}
	for act, f := range activated {
		glu := make([][]float64, len(x))
		for i := range x {
			for j := range x[i] {
				glu[i] = append(glu[i], f(x[i][j])*y[i][j])
			}
		}
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			return b.GLU(x, b.Linear(x, other, nil), plan.GLUAttr{Act: act})
		})
		near(t, act.String(), outputs(t, b, p, list, tensor.F32, 16, 0), glu, 1e-5, 0)
	}
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Add(x, b.Linear(x, other, nil)) })
	near(t, "add", outputs(t, b, p, list, tensor.F32, 16, 0), sum, 1e-5, 0)
}

func pick(t *testing.T, b plan.Backend) {
	table := Weight(newRand(4), "table", tensor.F32, 1, 9, 5)
	p := single(t, table, func(_ *plan.Builder, x plan.Value) plan.Value { return x })
	exe, err := b.Compile(context.Background(), p, plan.Limits{Tokens: 8, Seqs: 3, Rows: 4, PageTokens: 4, Cache: tensor.F32}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	batch := &plan.Batch{
		Tokens: []int32{8, 0, 3, 5, 1}, Positions: []int32{0, 1, 4, 0, 1}, Start: []int32{0, 2, 3, 5}, Lengths: []int32{2, 5, 2},
		Tables: []plan.PageTable{},
		Rows:   []plan.Row{{Token: 1, Want: plan.WantLogits | plan.WantHidden}, {Token: 2}, {Token: 4, Want: plan.WantHidden}},
	}
	step, err := exe.Submit(batch)
	if err != nil {
		t.Fatal(err)
	}
	res, err := step.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if res.Logits[1] != nil || res.Hidden[1] != nil || res.Logits[2] != nil {
		t.Error("a row has an output that it did not want")
	}
	m := matrix(table)
	near(t, "logits", [][]float32{res.Logits[0]}, [][]float64{m[0]}, 0, 0)
	near(t, "hidden", [][]float32{res.Hidden[0], res.Hidden[2]}, [][]float64{m[0], m[1]}, 0, 0)
}
