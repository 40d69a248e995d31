package plantest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// attendedBothWays computes plain softmax attention in float64 over a whole sequence.
func attendedBothWays(q, k, v [][]float64, a *plan.AttentionAttr) [][]float64 {
	out := make([][]float64, len(q))
	for t := range q {
		out[t] = make([]float64, a.Heads*a.HeadDim)
		for h := range a.Heads {
			g := h * a.KVHeads / a.Heads * a.HeadDim
			weights, sum := make([]float64, len(q)), 0.0
			for p := range q {
				if a.Window > 0 && max(t-p, p-t) >= a.Window {
					continue
				}
				s := 0.0
				for i := range a.HeadDim {
					s += q[t][h*a.HeadDim+i] * k[p][g+i]
				}
				weights[p] = math.Exp(s * a.Scale)
				sum += weights[p]
			}
			for p, w := range weights {
				for i := range a.HeadDim {
					out[t][h*a.HeadDim+i] += w / sum * v[p][g+i]
				}
			}
		}
	}
	return out
}

func bidirectional(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		attr    plan.AttentionAttr
		lengths []int
	}{
		{plan.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 16, Scale: 0.25}, []int{1, 2, 31, 33}},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 16, Scale: 0.25, Window: 1}, []int{1, 33, 2}},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 32, Scale: 0.2}, []int{200, 1, 33}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.2, Window: 65}, []int{600, 31, 2}},
		{plan.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 64, Scale: 0.125}, []int{200, 33}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 64, Scale: 0.125}, []int{600}},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 64, Scale: 0.125, Window: 300}, []int{600, 200}},
		{plan.AttentionAttr{Heads: 5, KVHeads: 1, HeadDim: 64, Scale: 0.125, Window: 17}, []int{200, 31, 31}},
		{plan.AttentionAttr{Heads: 3, KVHeads: 3, HeadDim: 80, Scale: 0.11}, []int{33, 200, 1}},
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 128, Scale: 0.09}, []int{33, 2, 200}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 128, Scale: 0.09, Window: 8}, []int{31, 33, 200}},
	} {
		a, rng, total := c.attr, newRand(uint64(c.attr.HeadDim+c.attr.Window)), 0
		in := min(a.Heads*a.HeadDim, 192)
		table := Weight(rng, "table", tensor.F32, 1, 101, in)
		wq := Weight(rng, "q", tensor.F32, 2/math.Sqrt(float64(in)), a.Heads*a.HeadDim, in)
		wk := Weight(rng, "k", tensor.F32, 1/math.Sqrt(float64(in)), a.KVHeads*a.HeadDim, in)
		wv := Weight(rng, "v", tensor.F32, 1/math.Sqrt(float64(in)), a.KVHeads*a.HeadDim, in)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Bidirectional(b.Linear(x, wq, nil), b.Linear(x, wk, nil), b.Linear(x, wv, nil), a)
		})
		for _, n := range c.lengths {
			total += n
		}
		r := runner(t, b, p, total, len(c.lengths), total, plan.Limits{Cache: tensor.F16})
		seqs, alone := make([]*Seq, len(c.lengths)), make([]*Seq, len(c.lengths))
		for i, n := range c.lengths {
			alone[i] = r.Add(ids(rng, n, 101), n)
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			r.Drop(alone[i])
		}
		for i, s := range alone {
			seqs[i] = r.Add(s.IDs, len(s.IDs))
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		for i, s := range seqs {
			what := fmt.Sprintf("%v, sequence %d of %v tokens", a, i, c.lengths)
			x := rowsOf(matrix(table), s.IDs)
			want := attendedBothWays(product(x, matrix(wq), nil), product(x, matrix(wk), nil), product(x, matrix(wv), nil), &a)
			near(t, what, s.Logits, want, 2e-5, 0)
			same(t, what+", alone and beside others", s.Logits, alone[i].Logits)
		}
	}
}

// pickMean asks for the mean of a sequence by any of its tokens, or by none.
func pickMean(t *testing.T, b plan.Backend) {
	const vocab, d = 19, 70
	rng := newRand(45)
	table := Weight(rng, "table", tensor.F32, 1, vocab, d)
	p := build(t, func(b *plan.Builder) {
		y := b.PickMean(b.Embed(table))
		b.Output(y, y)
	})
	exe, err := b.Compile(context.Background(), p, LimitsFor(p, 400, 4, 400, 16, plan.Limits{Cache: tensor.F32}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	batch := &plan.Batch{Start: []int32{0}, Tables: []plan.PageTable{}}
	var want [][]float64
	for s, n := range []int{3, 1, 300, 5} {
		first, mean := int32(len(batch.Tokens)), make([]float64, d)
		for i := range n {
			id := int32(rng.IntN(vocab))
			batch.Tokens, batch.Positions = append(batch.Tokens, id), append(batch.Positions, int32(i))
			for j, v := range matrix(table)[id] {
				mean[j] += v / float64(n)
			}
		}
		batch.Start, batch.Lengths = append(batch.Start, int32(len(batch.Tokens))), append(batch.Lengths, int32(n))
		for _, i := range [][]int32{{2}, {0}, {7, 299}, nil}[s] {
			batch.Rows = append(batch.Rows, plan.Row{Token: first + i, Want: plan.WantLogits | plan.WantHidden})
			want = append(want, mean)
		}
	}
	step, err := exe.Submit(batch)
	if err != nil {
		t.Fatal(err)
	}
	res := wait(t, step)
	near(t, "logits", res.Logits, want, 1e-5, 0)
	near(t, "hidden states", res.Hidden, want, 1e-5, 0)
}
