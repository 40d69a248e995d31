package plantest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// deltaRule computes the gated delta rule of a whole sequence in float64, one token after the other.
func deltaRule(q, k, v, beta, gate [][]float64, rate, bias []float64, a *plan.DeltaAttr) [][]float64 {
	unit := func(x []float64) []float64 {
		sum := 1e-6
		for _, v := range x {
			sum += v * v
		}
		y := slices.Clone(x)
		for i := range y {
			y[i] /= math.Sqrt(sum)
		}
		return y
	}
	out := make([][]float64, len(q))
	for t := range out {
		out[t] = make([]float64, a.Heads*a.ValueDim)
	}
	gates := 1
	if a.ByChannel {
		gates = a.KeyDim
	}
	for h := range a.Heads {
		key := h / (a.Heads / a.KeyHeads)
		if a.Tiled {
			key = h % a.KeyHeads
		}
		s := make([][]float64, a.KeyDim)
		for d := range s {
			s[d] = make([]float64, a.ValueDim)
		}
		for t := range q {
			qt, kt := unit(q[t][key*a.KeyDim:][:a.KeyDim]), unit(k[t][key*a.KeyDim:][:a.KeyDim])
			u := slices.Clone(v[t][h*a.ValueDim:][:a.ValueDim])
			for d := range s {
				c := h*gates + d%gates
				x := gate[t][c] + bias[c]
				g := rate[h] * math.Log1p(math.Exp(x))
				if a.Floor != 0 {
					g = a.Floor / (1 + math.Exp(rate[h]*x))
				}
				for i := range u {
					s[d][i] *= math.Exp(g)
					u[i] -= s[d][i] * kt[d]
				}
			}
			for d := range s {
				for i := range u {
					s[d][i] += kt[d] * u[i] * a.Beta / (1 + math.Exp(-beta[t][h]))
					out[t][h*a.ValueDim+i] += s[d][i] * qt[d] / math.Sqrt(float64(a.KeyDim))
				}
			}
		}
	}
	return out
}

// addDelta adds a delta node with its states.
func addDelta(b *plan.Builder, name string, q, k, v, beta, gate plan.Value, rate, bias *tensor.Tensor, a plan.DeltaAttr) plan.Value {
	matrices, rows := a.States()
	matrices.Name, rows.Name = name, name+".rows"
	state := b.State(matrices)
	a.Rows = b.State(rows)
	return b.Delta(q, k, v, beta, gate, rate, bias, state, a)
}

// delta runs several sequences, cut into steps of several sizes, over several chunks.
func delta(t *testing.T, b plan.Backend) {
	for _, c := range []plan.DeltaAttr{
		{KeyHeads: 2, Heads: 2, KeyDim: 16, ValueDim: 16, Beta: 1},
		{KeyHeads: 2, Heads: 6, KeyDim: 16, ValueDim: 24, Beta: 1},
		{KeyHeads: 2, Heads: 6, KeyDim: 12, ValueDim: 8, Beta: 2, Tiled: true},
		{KeyHeads: 1, Heads: 1, KeyDim: 128, ValueDim: 128, Beta: 1},
		{KeyHeads: 1, Heads: 2, KeyDim: 1, ValueDim: 1, Beta: 2},
		{KeyHeads: 1, Heads: 1, KeyDim: 256, ValueDim: 40, Beta: 1},
		{KeyHeads: 2, Heads: 2, KeyDim: 32, ValueDim: 32, Beta: 1, ByChannel: true},
		{KeyHeads: 2, Heads: 4, KeyDim: 20, ValueDim: 12, Beta: 1, ByChannel: true, Tiled: true},
		{KeyHeads: 1, Heads: 1, KeyDim: 256, ValueDim: 16, Beta: 1, ByChannel: true},
		{KeyHeads: 2, Heads: 2, KeyDim: 16, ValueDim: 16, Beta: 1, ByChannel: true, Floor: -5},
	} {
		const width = 48
		rng := newRand(uint64(c.KeyDim*c.ValueDim + c.Heads))
		table := Weight(rng, "table", tensor.F32, 1, 41, width)
		project := func(name string, rows int) *tensor.Tensor { return Weight(rng, name, tensor.F32, 0.3, rows, width) }
		wq, wk, wv := project("q", c.KeyHeads*c.KeyDim), project("k", c.KeyHeads*c.KeyDim), project("v", c.Heads*c.ValueDim)
		wb, wg := project("beta", c.Heads), project("gate", c.Heads*c.Gates())
		// Some heads forget within a few tokens, others hardly at all.
		rates := make([]float32, c.Heads)
		for i := range rates {
			rates[i] = -float32(math.Exp(3*rng.Float64() - 2.5))
		}
		rate, bias := floatTable("rate", rates), vector(rng, "bias", -1, 1, c.Heads*c.Gates())
		rate.Shape = []int{c.Heads}
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			return addDelta(b, "s", b.Linear(x, wq, nil), b.Linear(x, wk, nil), b.Linear(x, wv, nil), b.Linear(x, wb, nil), b.Linear(x, wg, nil), rate, bias, c)
		})
		r := runner(t, b, p, 300, 3, 160, plan.Limits{Cache: tensor.Q8_0, Activations: tensor.F32})
		lists := [][]int32{ids(rng, 150, 41), ids(rng, 1, 41), ids(rng, 65, 41)}
		var whole [][][]float32
		for n, chunks := range [][]int{{150, 1, 65}, {1, 1, 7}, {63, 1, 64}, {65, 1, 33}} {
			var seqs []*Seq
			for i, list := range lists {
				seqs = append(seqs, r.Add(list, chunks[i]))
			}
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			for i, s := range seqs {
				what := fmt.Sprintf("%v, sequence %d in steps of %v", c, i, chunks)
				if n == 0 {
					x := rowsOf(matrix(table), s.IDs)
					of := func(w *tensor.Tensor) [][]float64 { return product(x, matrix(w), nil) }
					want := deltaRule(of(wq), of(wk), of(wv), of(wb), of(wg), matrix(rate)[0], matrix(bias)[0], &c)
					near(t, what, s.Logits, want, 2e-5, 0.1)
					whole = append(whole, s.Logits)
				}
				same(t, what, s.Logits, whole[i])
				r.Drop(s)
			}
		}
	}
}

// DeltaModel returns a small decoder of 97 tokens with the delta rule, with gates by head and by
// channel, behind convolutions, and attention. change is as for [Model].
func DeltaModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(17)
	changed := applying(change)
	const headDim, taps = 32, 4
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		for i, d := range []tensor.DType{tensor.Q4_K, tensor.Q8_0, tensor.BF16} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			linear := func(x plan.Value, s string, rows int) plan.Value {
				return b.Linear(x, changed(Weight(rng, name(s), d, 0.06, rows, b.Cols(x))), nil)
			}
			h := b.RMSNorm(x, changed(vector(rng, name("norm"), 1, 0.1, modelHidden)), 1e-5)
			if i == 1 {
				a := plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: headDim, Scale: 0.17}
				state := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: 2, HeadDim: headDim, ValueDim: headDim})
				y := b.Attention(linear(h, "q", 4*headDim), linear(h, "k", 2*headDim), linear(h, "v", 2*headDim), nil, state, a)
				x = b.Add(x, linear(y, "o", modelHidden))
				continue
			}
			a := plan.DeltaAttr{KeyHeads: 2, Heads: 4, KeyDim: headDim, ValueDim: 64, Beta: 1}
			if i == 2 {
				a = plan.DeltaAttr{KeyHeads: 2, Heads: 2, KeyDim: headDim, ValueDim: headDim, Beta: 1, ByChannel: true}
			}
			conv := func(s string, rows int) plan.Value {
				state := b.State(plan.State{Name: name(s + ".tail"), Kind: plan.PerSequence, Size: (taps - 1) * rows})
				return b.Activate(b.Conv(linear(h, s, rows), Weight(rng, name(s+".conv"), tensor.F32, 0.6, rows, taps), nil, state), plan.SiLU)
			}
			q, k, v := conv("q", a.KeyHeads*a.KeyDim), conv("k", a.KeyHeads*a.KeyDim), conv("v", a.Heads*a.ValueDim)
			rates := make([]float32, a.Heads)
			for i := range rates {
				rates[i] = -0.1 * float32(1+i)
			}
			rate := floatTable(name("rate"), rates)
			rate.Shape = rate.Shape[1:]
			y := addDelta(b, name("delta"), q, k, v, linear(h, "beta", a.Heads), linear(h, "decay", a.Heads*a.Gates()), rate, vector(rng, name("bias"), 0, 1, a.Heads*a.Gates()), a)
			y = b.GLU(linear(h, "gate", a.Heads*a.ValueDim), b.RMSNorm(y, changed(vector(rng, name("head.norm"), 1, 0.1, a.ValueDim)), 1e-5), plan.GLUAttr{Act: plan.SiLU})
			x = b.Add(x, linear(y, "out", modelHidden))
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), changed(vector(rng, "last", 1, 0.1, modelHidden)), 1e-5)
		b.Output(h, b.Linear(h, changed(Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, modelHidden)), nil))
	})
}
