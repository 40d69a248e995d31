package plantest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// joined returns the rows of x and y by head: those of a head of x, then those of a head of y.
func joined(x, y [][]float64, heads int) [][]float64 {
	all := make([][]float64, len(x))
	for t := range x {
		n, m := len(x[t])/heads, len(y[t])/heads
		for h := range heads {
			all[t] = append(append(all[t], x[t][h*n:(h+1)*n]...), y[t][h*m:(h+1)*m]...)
		}
	}
	return all
}

// ropeEnds rotates ends and middles of heads.
func ropeEnds(t *testing.T, b plan.Backend) {
	for _, a := range []plan.RopeAttr{
		{HeadDim: 24, First: 16, Dims: 8},
		{HeadDim: 24, First: 16, Dims: 8, Interleaved: true},
		{HeadDim: 192, First: 128, Dims: 64, Interleaved: true},
		{HeadDim: 17, First: 3, Dims: 6},
		{HeadDim: 24, First: 16, Dims: 8, Interleaved: true, Shift: -3},
		{HeadDim: 24, Dims: 24, Shift: 5},
	} {
		a.Freqs, a.Scale = powers(100, a.Dims), 1.1
		table := Weight(newRand(5), "table", tensor.F32, 1, 50, 3*a.HeadDim)
		list := ids(newRand(6), 40, 50)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Rope(x, a) })
		want := turned(rowsOf(matrix(table), list), &a, func(int) []float64 { return a.Freqs })
		near(t, a.String(), outputs(t, b, p, list, tensor.F32, 16, 0), want, 1e-6, 0)
		// Negative frequencies turn back.
		back := a
		back.Freqs, back.Scale = slices.Clone(a.Freqs), 1/a.Scale
		for i := range back.Freqs {
			back.Freqs[i] *= -1
		}
		p = single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Rope(b.Rope(x, a), back) })
		near(t, a.String()+" and back", outputs(t, b, p, list, tensor.F32, 16, 0), rowsOf(matrix(table), list), 1e-6, 0)
	}
}

// latent compares attention whose values are the beginning of its keys with float64.
func latent(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		attr       plan.AttentionAttr
		sinks      bool
		tokens     int
		pageTokens int
	}{
		{plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 3, ValueDim: 2, Scale: 0.35}, false, 9, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 40, ValueDim: 32, Scale: 0.2}, false, 41, 16},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 64, ValueDim: 40, Scale: 0.2, Softcap: 2}, true, 70, 5},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 96, ValueDim: 64, Scale: 0.15, Window: 20}, false, 50, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15, Window: 270}, true, 530, 32},
		{plan.AttentionAttr{Heads: 20, KVHeads: 1, HeadDim: 576, ValueDim: 512, Scale: 0.07}, false, 21, 32},
		{plan.AttentionAttr{Heads: 40, KVHeads: 1, HeadDim: 32, ValueDim: 17, Scale: 0.2}, false, 6, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15}, false, 290, 5},
		{plan.AttentionAttr{Heads: 17, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15, Window: 30}, false, 70, 32},
	} {
		for _, cache := range Caches {
			a := c.attr
			if a.HeadDim%plan.HeadUnit(cache) != 0 {
				continue
			}
			rng := newRand(uint64(c.tokens))
			in := min(a.Heads*a.HeadDim, 256)
			table := Weight(rng, "table", tensor.F32, 1, 101, in)
			size := 0.3 * math.Sqrt(8/float64(in))
			wq := Weight(rng, "q", tensor.F32, 1/math.Sqrt(float64(in)), a.Heads*a.HeadDim, in)
			wc := Weight(rng, "c", tensor.F32, size, a.KVHeads*a.ValueDim, in)
			wr := Weight(rng, "r", tensor.F32, size, a.KVHeads*(a.HeadDim-a.ValueDim), in)
			var sinks *tensor.Tensor
			var logits []float64
			if c.sinks {
				sinks = Weight(rng, "sinks", tensor.F32, 2, a.Heads)
				logits = matrix(sinks)[0]
			}
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, Window: a.Window})
				return b.LatentAttention(b.Linear(x, wq, nil), b.Linear(x, wc, nil), b.Linear(x, wr, nil), sinks, st, a)
			})
			list := ids(rng, c.tokens, 101)
			x := rowsOf(matrix(table), list)
			keys := kept(joined(product(x, matrix(wc), nil), product(x, matrix(wr), nil), a.KVHeads), a.KVHeads, cache)
			want := attended(product(x, matrix(wq), nil), keys, beginnings(keys, a.KVHeads, a.ValueDim), logits, &a)
			near(t, fmt.Sprintf("%v, sinks %.3g, %d tokens, %v cache in pages of %d", a, logits, c.tokens, cache, c.pageTokens),
				outputs(t, b, p, list, cache, c.pageTokens, 0), want, tolerances[cache], 0)
		}
	}
}

// latentRows checks that latent attention whose rows are normalized and rotated, and whose queries are
// rotated and multiplied by head, has the same bits whether a backend does all that as it stores and
// multiplies, or apart, because others read the values too.
func latentRows(t *testing.T, b plan.Backend) {
	const heads, plain, in = 3, 32, 64
	for _, c := range []struct {
		rank, turned int
		interleaved  bool
		scaled       bool // the row is scaled after its norm, which then stays by itself
	}{{160, 32, true, false}, {512, 64, false, false}, {144, 16, false, true}, {96, 32, true, false}} {
		for _, cache := range Caches {
			if (c.rank+c.turned)%plan.HeadUnit(cache) != 0 {
				continue
			}
			rng := newRand(uint64(c.rank))
			weights := func(name string, rows, cols int) *tensor.Tensor {
				return Weight(rng, name, tensor.F32, 1/math.Sqrt(float64(cols)), rows, cols)
			}
			table, norm := Weight(rng, "table", tensor.F32, 1, 101, in), vector(rng, "norm", 1, 0.3, c.rank)
			wq, wc, wr := weights("q", heads*(plain+c.turned), in), weights("c", c.rank, in), weights("r", c.turned, in)
			var keys []*tensor.Tensor
			for h := range heads {
				keys = append(keys, Weight(rng, fmt.Sprint("keys", h), tensor.Q8_0, 0.2, c.rank, plain))
			}
			rope := plan.RopeAttr{HeadDim: plain + c.turned, First: plain, Dims: c.turned, Freqs: powers(100, c.turned), Scale: 1.1, Interleaved: c.interleaved}
			attend := func(apart bool) *plan.Program {
				return single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
					a := plan.AttentionAttr{Heads: heads, KVHeads: 1, HeadDim: c.rank + c.turned, ValueDim: c.rank, Scale: 0.2}
					st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: a.HeadDim})
					row := b.RMSNorm(b.Linear(x, wc, nil), norm, 1e-5)
					if c.scaled {
						row = b.Scale(row, 1.5)
					}
					own := rope
					own.HeadDim, own.First = c.turned, 0
					rest, queries := b.Rope(b.Linear(x, wr, nil), own), b.Rope(b.Linear(x, wq, nil), rope)
					y := b.LatentAttention(b.HeadLinear(queries, keys), row, rest, nil, st, a)
					if apart {
						y = b.Concat(y, b.Concat(row, b.Concat(rest, queries)))
					}
					return y
				})
			}
			for _, tokens := range []int{1, 5, 70} {
				list := ids(rng, tokens, 101)
				base := plan.Limits{Cache: cache, Activations: b.Rounds()}
				want := outputsWith(t, b, attend(true), list, base, 32, 0)
				for i := range want {
					want[i] = want[i][:heads*c.rank]
				}
				same(t, fmt.Sprintf("%+v, %d tokens, %v cache", c, tokens, cache), outputsWith(t, b, attend(false), list, base, 32, 0), want)
			}
		}
	}
}

// latentBits checks that attention to latent rows has the same bits in steps of many tokens and of
// few, beside other sequences and alone.
func latentBits(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		attr       plan.AttentionAttr
		tokens     int
		pageTokens int
		chunks     []int
	}{
		{plan.AttentionAttr{Heads: 17, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.3}, 275, 32, []int{8, 66}},
		{plan.AttentionAttr{Heads: 3, KVHeads: 1, HeadDim: 64, ValueDim: 64, Scale: 0.4, Window: 70}, 141, 5, []int{1, 70}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 64, ValueDim: 64, Scale: 0.4, Window: 300}, 531, 16, []int{8, 258}},
		{plan.AttentionAttr{Heads: 33, KVHeads: 1, HeadDim: 576, ValueDim: 512, Scale: 0.05}, 37, 32, []int{5, 18}},
		{plan.AttentionAttr{Heads: 34, KVHeads: 1, HeadDim: 640, ValueDim: 448, Scale: 0.05, Window: 9}, 33, 7, []int{1, 18}},
	} {
		a := c.attr
		rng := newRand(uint64(c.tokens))
		const vocab, in = 101, 64
		table := Weight(rng, "table", tensor.F32, 1, vocab, in)
		weights := func(name string, rows int) *tensor.Tensor {
			return Weight(rng, name, tensor.F32, 1/math.Sqrt(in), rows, in)
		}
		wq, wc := weights("q", a.Heads*a.HeadDim), weights("c", a.ValueDim)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: a.HeadDim, Window: a.Window})
			q, values := b.Linear(x, wq, nil), b.Linear(x, wc, nil)
			if a.HeadDim == a.ValueDim {
				return b.SharedAttention(q, values, nil, st, a)
			}
			return b.LatentAttention(q, values, b.Linear(x, weights("r", a.HeadDim-a.ValueDim), nil), nil, st, a)
		})
		r, err := NewRunner(b, p, LimitsFor(p, 2*c.tokens+1, 3, c.tokens, c.pageTokens, plan.Limits{Cache: tensor.F16}))
		if err != nil {
			t.Fatal(err)
		}
		list := ids(rng, c.tokens, vocab)
		run := func(chunk int, beside ...*Seq) [][]float32 {
			t.Helper()
			return r.logits(t, list, chunk, beside...)
		}
		want := run(c.tokens)
		what := fmt.Sprintf("%v, pages of %d", a, c.pageTokens)
		for _, chunk := range c.chunks {
			same(t, fmt.Sprintf("%s, steps of %d", what, chunk), run(chunk), want)
		}
		// The sequence begins at an odd token of a step and at an even one. In the first case, the
		// second step has a token of another before it, at the position before its first one.
		last := c.chunks[len(c.chunks)-1]
		for _, beside := range [][2]int{{2, last / 2}, {1, last + 1}} {
			few, other := r.Add(list[2:9], beside[0]), r.Add(list[1:last+1], beside[1])
			same(t, fmt.Sprintf("%s, steps of %d beside steps of %d", what, last, beside), run(last, few, other), want)
		}
		if err := r.Exe.Close(); err != nil {
			t.Error(err)
		}
	}
}

// headLinear compares products by head with float64, in every format, for heads that are whole
// blocks and others.
func headLinear(t *testing.T, b plan.Backend) {
	activations := b.Rounds()
	for _, d := range Dtypes {
		block := d.BlockLen()
		for _, c := range []struct{ heads, in, out, kept, tokens int }{
			{1, block, 1, 0, 1}, {3, block, 40, 8, 5}, {4, 2 * block, 64, 0, 21}, {5, 3 * block, 33, 3, 2}, {3, block, 48, 16, 1}, {2, 2 * block, 32, 64, 1},
		} {
			rng := newRand(uint64(c.in*100 + c.out))
			table := Weight(rng, "table", tensor.F32, 1, 31, c.heads*(c.in+c.kept))
			var weights []*tensor.Tensor
			for h := range c.heads {
				w := Weight(rng, fmt.Sprint("w", h), d, 0.5, c.out, c.in)
				if c.heads == 3 {
					w = Derive(w)
				}
				weights = append(weights, w)
			}
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.HeadLinear(x, weights) })
			list := ids(rng, c.tokens, 31)
			got := outputsWith(t, b, p, list, plan.Limits{Cache: tensor.F32, Activations: activations}, 16, 0)
			x := rowsOf(matrix(table), list)
			for h, w := range weights {
				part, products := make([][]float64, len(x)), make([][]float32, len(x))
				for i, row := range x {
					part[i] = row[h*(c.in+c.kept):][:c.in]
					head := got[i][h*(c.out+c.kept):][:c.out+c.kept]
					products[i] = head[:c.out]
					for j, v := range head[c.out:] {
						if want := row[h*(c.in+c.kept)+c.in+j]; float64(v) != want {
							t.Fatalf("%v, %+v: element %d of the rest of head %d is %v, want %v", d, c, j, h, v, want)
						}
					}
				}
				promised(t, fmt.Sprintf("%v, %+v, head %d", d, c, h), products, part, w, nil, activations)
			}
		}
	}
}

// LatentModel returns a small decoder of 97 tokens with latent attention: queries multiplied into
// the space of keys by head, keys that are also values, and results multiplied out of it. One layer
// has a window. change is as for [Model].
func LatentModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	return latentModel(t, change, 0)
}

// SparseModel is LatentModel with attention to 20 chosen positions in place of a window. The layer
// in the middle attends to those of the first.
func SparseModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	return latentModel(t, change, 20)
}

func latentModel(t *testing.T, change func(*tensor.Tensor), top int) *plan.Program {
	rng := newRand(17)
	const heads, nope, turned, rank, queryRank, value = 4, 32, 32, 64, 96, 32
	const indexHeads, indexDim = 3, 64
	chosen := plan.Value(-1)
	return build(t, func(b *plan.Builder) {
		changed := func(w *tensor.Tensor) *tensor.Tensor {
			if change != nil {
				change(w)
			}
			return w
		}
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		for i, d := range []tensor.DType{tensor.Q8_0, tensor.BF16, tensor.Q4_0} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			linear := func(x plan.Value, s string, rows int) plan.Value {
				return b.Linear(x, changed(Weight(rng, name(s), d, 1/math.Sqrt(float64(b.Cols(x))), rows, b.Cols(x))), nil)
			}
			norm := func(x plan.Value, s string) plan.Value {
				return b.RMSNorm(x, changed(vector(rng, name(s), 1, 0.1, b.Cols(x))), 1e-5)
			}
			byHead := func(s string, rows, cols int) (all []*tensor.Tensor) {
				for h := range heads {
					all = append(all, changed(Weight(rng, fmt.Sprintf("%d.%s.%d", i, s, h), d, 1/math.Sqrt(float64(cols)), rows, cols)))
				}
				return all
			}
			h := norm(x, "norm")
			turn := plan.RopeAttr{HeadDim: nope + turned, First: nope, Dims: turned, Interleaved: i == 1, Freqs: powers(1e4, turned), Scale: 1}
			from := norm(linear(h, "qa", queryRank), "qn")
			q := b.HeadLinear(b.Rope(linear(from, "qb", heads*(nope+turned)), turn), byHead("kb", rank, nope))
			turn.HeadDim, turn.First = turned, 0
			c, r := norm(linear(h, "c", rank), "cn"), b.Rope(linear(h, "r", turned), turn)
			a := plan.AttentionAttr{Heads: heads, KVHeads: 1, HeadDim: rank + turned, ValueDim: rank, Scale: 0.17, Top: top}
			if i == 1 && top == 0 {
				a.Window = 50
			}
			if i != 1 && top > 0 {
				keys := b.State(plan.State{Name: name("index"), Kind: plan.PerToken, KVHeads: 1, HeadDim: indexDim})
				k := b.LayerNorm(linear(h, "ik", indexDim), changed(vector(rng, name("in"), 1, 0.1, indexDim)), vector(rng, name("ib"), 0, 0.1, indexDim), 1e-6)
				chosen = b.Select(linear(from, "iq", indexHeads*indexDim), k, linear(h, "iw", indexHeads), keys, plan.SelectAttr{Heads: indexHeads, HeadDim: indexDim, Top: top})
			}
			state := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: 1, HeadDim: rank + turned, Window: a.Window})
			var y plan.Value
			if top > 0 {
				y = b.SparseAttention(q, c, r, chosen, nil, state, a)
			} else {
				y = b.LatentAttention(q, c, r, nil, state, a)
			}
			x = b.Add(x, linear(b.HeadLinear(y, byHead("vb", value, rank)), "o", modelHidden))
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), changed(vector(rng, "last", 1, 0.1, modelHidden)), 1e-5)
		b.Output(h, b.Linear(h, changed(Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, modelHidden)), nil))
	})
}
