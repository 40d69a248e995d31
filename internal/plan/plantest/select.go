package plantest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// wholes returns a tensor of whole numbers from -most to most, whose products are exact.
func wholes(rng *rand.Rand, name string, most int, shape ...int) *tensor.Tensor {
	w := Weight(rng, name, tensor.F32, 1, shape...)
	for i := range w.Elems() {
		binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(float32(rng.IntN(2*most+1)-most)))
	}
	return w
}

// chosen returns the rows that each token attends to, in float64. k are the rows of all tokens.
func chosen(q, k, w [][]float64, a *plan.SelectAttr) [][]float64 {
	all := make([][]float64, len(q))
	for t := range q {
		scores := make([]float64, a.Seen(t))
		list := make([]int, a.Seen(t))
		every := max(1, a.Every)
		for p := range scores {
			list[p] = p
			for h := range a.Heads {
				product := 0.0
				for i := range a.HeadDim {
					product += q[t][h*a.HeadDim+i] * k[(p+1)*every-1][i]
				}
				scores[p] += w[t][h] * max(0, product)
			}
		}
		slices.SortStableFunc(list, func(p, q int) int { return cmp.Compare(scores[q], scores[p]) })
		list = list[:min(len(list), a.Top)]
		slices.Sort(list)
		for i := range a.Top {
			if i < len(list) {
				all[t] = append(all[t], float64(list[i]))
			} else {
				all[t] = append(all[t], -1)
			}
		}
	}
	return all
}

// selected compares choices with float64. Scores are whole numbers, of which many are equal.
func selected(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		attr               plan.SelectAttr
		tokens, pageTokens int
	}{
		{plan.SelectAttr{Heads: 1, HeadDim: 1, Top: 1}, 9, 4},
		{plan.SelectAttr{Heads: 1, HeadDim: 3, Top: 4}, 40, 16},
		{plan.SelectAttr{Heads: 4, HeadDim: 16, Top: 12}, 60, 32},
		{plan.SelectAttr{Heads: 5, HeadDim: 33, Top: 50}, 50, 5},
		{plan.SelectAttr{Heads: 3, HeadDim: 32, Top: 51}, 50, 32},
		{plan.SelectAttr{Heads: 5, HeadDim: 24, Top: 100}, 600, 32},
		{plan.SelectAttr{Heads: 64, HeadDim: 128, Top: 7}, 70, 32},
		{plan.SelectAttr{Heads: 4, HeadDim: 16, Top: 4, Every: 4}, 150, 32},
		{plan.SelectAttr{Heads: 3, HeadDim: 24, Top: 9, Every: 5}, 170, 16},
		{plan.SelectAttr{Heads: 2, HeadDim: 8, Top: 2, Every: 24}, 170, 16},
		{plan.SelectAttr{Heads: 2, HeadDim: 32, Top: 200, Every: 2}, 600, 5},
	} {
		for _, cache := range []tensor.DType{tensor.F32, tensor.F16} {
			rng, a := newRand(uint64(c.tokens)), c.attr
			const in = 7
			table := wholes(rng, "table", 1, 101, in)
			wq, wk, ww := wholes(rng, "q", 2, a.Heads*a.HeadDim, in), wholes(rng, "k", 2, a.HeadDim, in), wholes(rng, "w", 1, a.Heads, in)
			p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
				state := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: a.HeadDim, Every: a.Every})
				return b.Select(b.Linear(x, wq, nil), b.Linear(x, wk, nil), b.Linear(x, ww, nil), state, a)
			})
			list := ids(rng, c.tokens, 101)
			x := rowsOf(matrix(table), list)
			want := chosen(product(x, matrix(wq), nil), product(x, matrix(wk), nil), product(x, matrix(ww), nil), &a)
			near(t, fmt.Sprintf("%v, %d tokens, %v cache in pages of %d", a, c.tokens, cache, c.pageTokens),
				outputs(t, b, p, list, cache, c.pageTokens, 0), want, 0, 0)
		}
	}
}

// sparse compares attention to chosen positions with float64, and with the bits of attention to all
// if all are chosen.
func sparse(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		attr               plan.AttentionAttr
		sinks              bool
		tokens, pageTokens int
	}{
		{plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 3, ValueDim: 2, Scale: 0.35, Top: 1}, false, 9, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 40, ValueDim: 32, Scale: 0.2, Top: 12}, false, 60, 16},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 64, ValueDim: 40, Scale: 0.2, Softcap: 2, Top: 30}, true, 70, 5},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15, Top: 3}, true, 530, 32},
		{plan.AttentionAttr{Heads: 40, KVHeads: 1, HeadDim: 32, ValueDim: 17, Scale: 0.2, Top: 70}, false, 90, 32},
		{plan.AttentionAttr{Heads: 20, KVHeads: 1, HeadDim: 576, ValueDim: 512, Scale: 0.07, Top: 30}, false, 30, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, ValueDim: 20, Scale: 0.07, Top: 530}, false, 530, 32},
		{plan.AttentionAttr{Heads: 3, KVHeads: 1, HeadDim: 64, ValueDim: 32, Scale: 0.2, Top: 70}, true, 60, 5},
	} {
		for _, cache := range Caches {
			a := c.attr
			if a.HeadDim%plan.HeadUnit(cache) != 0 {
				continue
			}
			const in, dim = 60, 32
			rng, s := newRand(uint64(c.tokens)), plan.SelectAttr{Heads: 2, HeadDim: dim, Top: a.Top}
			table := wholes(rng, "table", 1, 101, in)
			size := 0.3 * math.Sqrt(8./in)
			wq := Weight(rng, "q", tensor.F32, 1/math.Sqrt(in), a.Heads*a.HeadDim, in)
			wc := Weight(rng, "c", tensor.F32, size, a.KVHeads*a.ValueDim, in)
			wr := Weight(rng, "r", tensor.F32, size, a.KVHeads*(a.HeadDim-a.ValueDim), in)
			// Keys for the choice are a large and smaller whole numbers, which are exact in the cache.
			large := float32(127)
			if cache == tensor.F8_E4M3 {
				large = 128
			}
			iq, ik, iw := wholes(rng, "iq", 1, s.Heads*dim, in), wholes(rng, "ik", 0, dim, in), wholes(rng, "iw", 1, s.Heads, in)
			var sinks *tensor.Tensor
			var logits []float64
			if c.sinks {
				sinks = Weight(rng, "sinks", tensor.F32, 2, a.Heads)
				logits = matrix(sinks)[0]
			}
			ib := wholes(rng, "ib", 1, dim)
			binary.LittleEndian.PutUint32(ib.Data, math.Float32bits(large))
			for i := 1; i < dim; i++ { // element i is element i of the input
				binary.LittleEndian.PutUint32(ik.Data[4*(i*in+i):], math.Float32bits(1))
			}
			with := func(all bool) *plan.Program {
				return single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
					st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim})
					q, c, r := b.Linear(x, wq, nil), b.Linear(x, wc, nil), b.Linear(x, wr, nil)
					if all {
						dense := a
						dense.Top = 0
						return b.LatentAttention(q, c, r, sinks, st, dense)
					}
					keys := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: dim})
					chosen := b.Select(b.Linear(x, iq, nil), b.Linear(x, ik, ib), b.Linear(x, iw, nil), keys, s)
					return b.SparseAttention(q, c, r, chosen, sinks, st, a)
				})
			}
			p := with(false)
			what := fmt.Sprintf("%v, sinks %.3g, %d tokens, %v cache in pages of %d", a, logits, c.tokens, cache, c.pageTokens)
			list := ids(rng, c.tokens, 101)
			x := rowsOf(matrix(table), list)
			keys := kept(joined(product(x, matrix(wc), nil), product(x, matrix(wr), nil), a.KVHeads), a.KVHeads, cache)
			choice := chosen(product(x, matrix(iq), nil), product(x, matrix(ik), matrix(ib)[0]), product(x, matrix(iw), nil), &s)
			want := attendedAt(product(x, matrix(wq), nil), keys, beginnings(keys, a.KVHeads, a.ValueDim), logits, &a, choice)
			got := outputs(t, b, p, list, cache, c.pageTokens, 0)
			near(t, what, got, want, tolerances[cache], 0)
			if a.Top < c.tokens {
				continue
			}
			for i, row := range outputs(t, b, with(true), list, cache, c.pageTokens, 0) {
				if !slices.Equal(row, got[i]) {
					t.Fatalf("%s: the bits of row %d are not those of attention to all", what, i)
				}
			}
		}
	}
}
