package plantest

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// joinedRows computes the compression of x with gate in float64.
func joinedRows(x, gate, bias [][]float64, a *plan.CompressAttr) [][]float64 {
	out := make([][]float64, len(x))
	for t := range x {
		d := len(x[t])
		if a.Overlap {
			d /= 2
		}
		if out[t] = make([]float64, d); (t+1)%a.Rate != 0 {
			continue
		}
		for i := range d {
			sum, total := 0.0, 0.0
			for p := max(0, t+1-a.Span()); p <= t; p++ {
				at := i
				if a.Overlap && p > t-a.Rate {
					at += d
				}
				w := math.Exp(gate[p][at] + bias[p%a.Rate][at])
				sum, total = sum+w*x[p][at], total+w
			}
			out[t][i] = sum / total
		}
	}
	return out
}

// compress compares compressed rows with float64.
func compress(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		attr                     plan.CompressAttr
		cols, tokens, pageTokens int
	}{
		{plan.CompressAttr{Rate: 1}, 3, 5, 4},
		{plan.CompressAttr{Rate: 1, Overlap: true}, 4, 9, 4},
		{plan.CompressAttr{Rate: 4, Overlap: true}, 64, 70, 32},
		{plan.CompressAttr{Rate: 32}, 40, 150, 16},
		{plan.CompressAttr{Rate: 7, Overlap: true}, 34, 100, 5},
	} {
		rng, a := newRand(uint64(c.tokens)), c.attr
		const in = 24
		table := Weight(rng, "table", tensor.F32, 1, 101, in)
		wx, wg := Weight(rng, "x", tensor.F32, 0.4, c.cols, in), Weight(rng, "g", tensor.F32, 0.4, c.cols, in)
		bias := Weight(rng, "bias", tensor.F32, 1, a.Rate, c.cols)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			state := a.State(c.cols)
			state.Name = "rows"
			return b.Compress(b.Linear(x, wx, nil), b.Linear(x, wg, nil), bias, b.State(state), a)
		})
		list := ids(rng, c.tokens, 101)
		x := rowsOf(matrix(table), list)
		want := joinedRows(product(x, matrix(wx), nil), product(x, matrix(wg), nil), matrix(bias), &a)
		for _, cache := range []tensor.DType{tensor.F32, tensor.F16} { // the state is exact
			near(t, fmt.Sprintf("%v, %d tokens, %v cache", a, c.tokens, cache), outputs(t, b, p, list, cache, c.pageTokens, 0), want, 1e-5, 0)
		}
	}
}

// compressed compares attention to keys that are values, alone and beside compressed rows, with
// float64.
func compressed(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		heads, dim, window, rate, top int
		sinks                         bool
		tokens, pageTokens            int
	}{
		{2, 3, 0, 0, 0, false, 9, 4},
		{4, 32, 16, 0, 0, true, 70, 32},
		{4, 32, 16, 4, 0, true, 150, 32},
		{4, 32, 16, 32, 0, true, 150, 16},
		{20, 96, 128, 3, 0, false, 170, 16},
		{3, 64, 20, 4, 7, true, 150, 5},
		{2, 32, 8, 2, 40, false, 700, 32},
		{2, 32, 8, 1, 0, true, 600, 32},
		{64, 512, 32, 4, 6, true, 60, 32},
	} {
		for _, cache := range Caches {
			if c.dim%plan.HeadUnit(cache) != 0 {
				continue
			}
			const in, dim = 40, 8
			rng := newRand(uint64(c.tokens))
			table := Weight(rng, "table", tensor.F32, 1, 101, in)
			size := 0.3 * math.Sqrt(8./in)
			wq, wk, wf := Weight(rng, "q", tensor.F32, 1/math.Sqrt(in), c.heads*c.dim, in), Weight(rng, "k", tensor.F32, size, c.dim, in), Weight(rng, "f", tensor.F32, size, c.dim, in)
			whole := wholes(rng, "whole", 1, 101, in)
			iq, ik, iw := wholes(rng, "iq", 1, 2*dim, in), wholes(rng, "ik", 1, dim, in), wholes(rng, "iw", 1, 2, in)
			var sinks *tensor.Tensor
			var logits []float64
			if c.sinks {
				sinks = Weight(rng, "sinks", tensor.F32, 2, c.heads)
				logits = matrix(sinks)[0]
			}
			a := plan.AttentionAttr{Heads: c.heads, KVHeads: 1, HeadDim: c.dim, Scale: 0.2, Window: c.window, Rate: c.rate, Top: c.top}
			s := plan.SelectAttr{Heads: 2, HeadDim: dim, Top: c.top, Every: c.rate}
			if plan.HeadUnit(cache) > 1 && c.top > 0 {
				continue // its choices are other ones
			}
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				state := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: c.dim, Window: c.window})
				q, k := b.Linear(x, wq, nil), b.Linear(x, wk, nil)
				if c.rate == 0 {
					return b.SharedAttention(q, k, sinks, state, a)
				}
				a.Compressed = b.State(plan.State{Name: "far", Kind: plan.PerToken, KVHeads: 1, HeadDim: c.dim, Every: c.rate})
				var list []plan.Value
				if c.top > 0 {
					y := b.EmbedPart(whole, 0, in)
					keys := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: dim, Every: c.rate})
					list = append(list, b.Select(b.Linear(y, iq, nil), b.Linear(y, ik, nil), b.Linear(y, iw, nil), keys, s))
				}
				return b.CompressedAttention(q, k, b.Linear(x, wf, nil), sinks, state, a, list...)
			})
			list := ids(rng, c.tokens, 101)
			x := rowsOf(matrix(table), list)
			// Compressed rows come before the tokens' own.
			keys, seen := [][]float64(nil), make([][]float64, c.tokens)
			if c.rate > 0 {
				y, far := rowsOf(matrix(whole), list), product(x, matrix(wf), nil)
				choice := chosen(product(y, matrix(iq), nil), product(y, matrix(ik), nil), product(y, matrix(iw), nil), &s)
				for i := range c.tokens / c.rate {
					keys = append(keys, far[(i+1)*c.rate-1])
				}
				for i := range seen {
					for r := range (i + 1) / c.rate {
						if c.top == 0 {
							seen[i] = append(seen[i], float64(r))
						}
					}
					for _, r := range choice[i] {
						if r >= 0 {
							seen[i] = append(seen[i], r)
						}
					}
				}
			}
			for i := range seen {
				for p := max(0, i+1-c.window) * min(1, c.window); p <= i; p++ {
					seen[i] = append(seen[i], float64(len(keys)+p))
				}
			}
			keys = kept(append(keys, product(x, matrix(wk), nil)...), 1, cache)
			want := attendedAt(product(x, matrix(wq), nil), keys, keys, logits, &a, seen)
			near(t, fmt.Sprintf("%v, sinks %.3g, %d tokens, %v cache in pages of %d", a, logits, c.tokens, cache, c.pageTokens),
				outputs(t, b, p, list, cache, c.pageTokens, 0), want, tolerances[cache], 0)
		}
	}
}

// connect compares the coefficients of hyper-connections with float64, and their sums with 1.
func connect(t *testing.T, b plan.Backend) {
	for _, a := range []plan.ConnectAttr{
		{Streams: 4, Iterations: 20, Eps: 1e-6}, {Streams: 4, Iterations: 1, Eps: 1e-2}, {Streams: 1, Iterations: 3}, {Streams: 7, Iterations: 40, Eps: 1e-5},
		{Streams: 4, Last: true, Eps: 1e-3},
	} {
		rng := newRand(9)
		n, parts := a.Streams, 3
		if a.Last {
			parts = 1
		}
		table := Weight(rng, "table", tensor.F32, 2, 31, a.Columns())
		scale, base := Weight(rng, "scale", tensor.F32, 1, parts), Weight(rng, "base", tensor.F32, 1, a.Columns())
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Connect(x, scale, base, a) })
		list := ids(rng, 20, 31)
		want := make([][]float64, len(list))
		for i, x := range rowsOf(matrix(table), list) {
			z := make([]float64, len(x))
			for j := range z {
				z[j] = x[j]*matrix(scale)[0][min(j/n, parts-1)] + matrix(base)[0][j]
			}
			sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
			for j := range n {
				want[i] = append(want[i], sigmoid(z[j])+a.Eps)
			}
			if a.Last {
				continue
			}
			comb := make([][]float64, n)
			for j := range comb {
				for _, v := range softmax(z[2*n+j*n:][:n]) {
					comb[j] = append(comb[j], v+a.Eps)
				}
			}
			for step := range a.Iterations {
				for j := range n {
					rows := a.Eps
					for k := range n {
						rows += comb[j][k]
					}
					for k := range n {
						if step > 0 {
							comb[j][k] /= rows
						}
					}
				}
				for k := range n {
					columns := a.Eps
					for j := range n {
						columns += comb[j][k]
					}
					for j := range n {
						comb[j][k] /= columns
					}
				}
			}
			for k := range n {
				want[i] = append(want[i], 2*sigmoid(z[n+k]))
				for j := range n {
					want[i] = append(want[i], comb[j][k])
				}
			}
		}
		got := outputs(t, b, p, list, tensor.F32, 16, 0)
		near(t, a.String(), got, want, 1e-6, 0)
		if a.Last || a.Iterations < 20 {
			continue
		}
		for _, row := range got {
			for k := range n {
				sum := 0.0
				for _, v := range row[a.Of(k)+1:][:n] {
					sum += float64(v)
				}
				if math.Abs(sum-1) > 1e-4 {
					t.Fatalf("%v: the coefficients of stream %d add up to %v, want 1", a, k, sum)
				}
			}
		}
	}
}

// CompressedModel returns a small decoder of 97 tokens with a residual of three streams, and
// attention to a window and to compressed rows: all of them in the first layer, chosen ones in the
// second; the third has the window alone. Its experts are given by token in the first layer. change
// is as for [Model].
func CompressedModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(23)
	const heads, dim, turned, window, indexHeads, indexDim, experts, ffn = 4, 64, 32, 20, 3, 32, 4, 64
	return build(t, func(b *plan.Builder) {
		changed := func(w *tensor.Tensor) *tensor.Tensor {
			if change != nil {
				change(w)
			}
			return w
		}
		hyper := plan.ConnectAttr{Streams: 3, Iterations: 4, Eps: 1e-6}
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		streams := []plan.Value{x, x, x}
		linear := func(x plan.Value, name string, d tensor.DType, rows int) plan.Value {
			return b.Linear(x, changed(Weight(rng, name, d, 1/math.Sqrt(float64(b.Cols(x))), rows, b.Cols(x))), nil)
		}
		norm := func(x plan.Value, name string, n int) plan.Value {
			return b.RMSNorm(x, changed(vector(rng, name, 1, 0.1, n)), 1e-5)
		}
		coefficients := func(name string, a plan.ConnectAttr) plan.Value {
			all := b.Concat(b.Concat(streams[0], streams[1]), streams[2])
			logits := linear(b.RMSNorm(all, vector(rng, name+".one", 1, 0, b.Cols(all)), 1e-5), name+".fn", tensor.BF16, a.Columns())
			parts := 3
			if a.Last {
				parts = 1
			}
			return b.Connect(logits, vector(rng, name+".scale", 1, 0.1, parts), vector(rng, name+".base", 0, 0.5, a.Columns()), a)
		}
		connected := func(name string, f func(x plan.Value) plan.Value) {
			c := coefficients(name, hyper)
			y := f(b.Mix(c, 0, streams...))
			var after []plan.Value
			for k := range streams {
				after = append(after, b.Mix(c, hyper.Of(k), append([]plan.Value{y}, streams...)...))
			}
			streams = after
		}
		for i, c := range []struct {
			d         tensor.DType
			rate, top int
		}{{tensor.Q8_0, 7, 0}, {tensor.BF16, 7, 3}, {tensor.Q4_0, 0, 0}} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			turn := plan.RopeAttr{HeadDim: dim, First: dim - turned, Dims: turned, Interleaved: true, Freqs: powers(1e4, turned), Scale: 1}
			joined := func(h plan.Value, s string, dim int) plan.Value {
				a, cols := plan.CompressAttr{Rate: c.rate, Overlap: c.top > 0}, dim
				if a.Overlap {
					cols = 2 * dim
				}
				state := a.State(cols)
				state.Name = name(s)
				y := b.Compress(linear(h, name(s+".kv"), c.d, cols), linear(h, name(s+".gate"), c.d, cols), Weight(rng, name(s+".bias"), tensor.F32, 0.3, a.Rate, cols), b.State(state), a)
				after := turn
				after.HeadDim, after.First, after.Shift = dim, dim-turned, 1-c.rate
				return b.Rope(norm(y, name(s+".norm"), dim), after)
			}
			connected(name("hca"), func(x plan.Value) plan.Value {
				h := norm(x, name("norm"), modelHidden)
				from := norm(linear(h, name("qa"), c.d, 96), name("qn"), 96)
				q := b.Rope(norm(linear(from, name("qb"), c.d, heads*dim), name("one"), dim), turn)
				k := b.Rope(norm(linear(h, name("kv"), c.d, dim), name("kn"), dim), turn)
				a := plan.AttentionAttr{Heads: heads, KVHeads: 1, HeadDim: dim, Window: window, Scale: 0.15, Rate: c.rate, Top: c.top}
				state := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: 1, HeadDim: dim, Window: window})
				sinks := vector(rng, name("sinks"), 0, 1, heads)
				if c.rate == 0 {
					return linear(b.SharedAttention(q, k, sinks, state, a), name("o"), c.d, modelHidden)
				}
				far := joined(h, "far", dim)
				a.Compressed = b.State(plan.State{Name: name("rows"), Kind: plan.PerToken, KVHeads: 1, HeadDim: dim, Every: c.rate})
				var chosen []plan.Value
				if c.top > 0 {
					keys := joined(h, "index", indexDim)
					s := plan.SelectAttr{Heads: indexHeads, HeadDim: indexDim, Top: c.top, Every: c.rate}
					st := b.State(plan.State{Name: name("keys"), Kind: plan.PerToken, KVHeads: 1, HeadDim: indexDim, Every: c.rate})
					chosen = append(chosen, b.Select(linear(from, name("iq"), c.d, indexHeads*indexDim), keys, linear(h, name("iw"), c.d, indexHeads), st, s))
				}
				return linear(b.CompressedAttention(q, k, far, sinks, state, a, chosen...), name("o"), c.d, modelHidden)
			})
			connected(name("hcf"), func(x plan.Value) plan.Value {
				h := norm(x, name("norm2"), modelHidden)
				list := func(s string, rows, cols int) (all []*tensor.Tensor) {
					for e := range experts {
						all = append(all, changed(Weight(rng, name(fmt.Sprintf("%s.%d", s, e)), tensor.Q8_0, 1/math.Sqrt(float64(cols)), rows, cols)))
					}
					return all
				}
				a := plan.ExpertsAttr{
					Route: plan.RouteAttr{Used: 2, Score: plan.SqrtSoftplus, Normalize: true, Scale: 1.5}, GLU: plan.GLUAttr{Limit: 3},
					Gate: list("gate", ffn, modelHidden), Up: list("up", ffn, modelHidden), Down: list("down", modelHidden, ffn),
				}
				logits := linear(h, name("router"), tensor.F32, experts)
				if i > 0 {
					return b.Experts(h, logits, vector(rng, name("bias"), 0, 0.1, experts), a)
				}
				given := wholes(rng, name("given"), 1, modelVocab, 2) // -1 counts as 0
				return b.GivenExperts(h, logits, b.EmbedPart(given, 0, 2), a)
			})
		}
		last := hyper
		last.Last = true
		x = b.Mix(coefficients("last", last), 0, streams...)
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), changed(vector(rng, "lastnorm", 1, 0.1, modelHidden)), 1e-5)
		b.Output(h, b.Linear(h, changed(Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, modelHidden)), nil))
	})
}
