package cpu

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An attentionShape is an attention, with sinks or without.
type attentionShape struct {
	plan.AttentionAttr
	sinks bool
}

// stored returns the numbers of columns of the two values that a node stores: keys and values, or the
// two parts of a latent row.
func (a *attentionShape) stored() (k, v int) {
	if a.Latent {
		return a.KVHeads * a.ValueDim, a.KVHeads * (a.HeadDim - a.ValueDim)
	}
	return a.KVHeads * a.HeadDim, a.KVHeads * a.Values()
}

var shapes = []attentionShape{
	{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 32, Scale: 0.2}, false},
	{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 64, Scale: 0.125, Softcap: 1.5, Window: 270}, true},
	{plan.AttentionAttr{Heads: 3, KVHeads: 1, HeadDim: 64, Scale: 0.125, Window: 300}, false},
	{plan.AttentionAttr{Heads: 5, KVHeads: 5, HeadDim: 96, Scale: 0.1, Window: 40}, false},
	{plan.AttentionAttr{Heads: 33, KVHeads: 1, HeadDim: 32, Scale: 0.2}, true},
	{plan.AttentionAttr{Heads: 12, KVHeads: 1, HeadDim: 96, ValueDim: 64, Latent: true, Scale: 0.1}, false},
	{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 64, ValueDim: 40, Latent: true, Scale: 0.1, Window: 270}, true},
}

// attendAll attends in steps of that many tokens and returns every token's output. The rig's past
// is that of set; its keys and values are stored again.
func (r *attentionRig) attendAll(tokens int, q, k, v [][]float32) [][]float32 {
	n, table := r.nodes[0], r.batch.Tables
	var out [][]float32
	for t := 0; t < len(q); t += tokens {
		b := &plan.Batch{Tables: table, Start: []int32{0, int32(min(tokens, len(q)-t))}, Lengths: []int32{int32(len(q))}}
		for i := t; i < min(len(q), t+tokens); i++ {
			b.Tokens, b.Positions = append(b.Tokens, 0), append(b.Positions, int32(i))
		}
		r.batch = b
		r.resolve(b)
		for i := range b.Tokens {
			copy(r.row(n.In[0], i), q[t+i])
			copy(r.row(n.In[1], i), k[t+i])
			copy(r.row(n.In[2], i), v[t+i])
		}
		r.do(r.kernels[0])
		for i := range b.Tokens {
			out = append(out, slices.Clone(r.row(n.Out, i)))
		}
	}
	return out
}

// A token's bits depend neither on the steps, nor on which worker does what, nor on other data in
// the pages.
func TestAttentionBits(t *testing.T) {
	eachTier(t, func(t *testing.T, tr tier) {
		positions, shapes := 530, shapes
		if tr.name == generic.name {
			positions, shapes = 280, shapes[:2]
		}
		for _, a := range shapes {
			for _, d := range cacheTypes {
				rows := func(n, seed int) [][]float32 {
					m := make([][]float32, positions)
					for p := range m {
						for i := range n {
							m[p] = append(m[p], float32(math.Sin(float64(p*n+i+seed)*1.7)))
						}
					}
					return m
				}
				kWidth, vWidth := a.stored()
				q, k, v := rows(a.Heads*a.HeadDim, 1), rows(kWidth, 2), rows(vWidth, 3)
				var want [][]float32
				for _, c := range []struct{ threads, tokens, pageTokens int }{
					{1, positions, 32}, {1, 1, 32}, {3, 1, 16}, {2, 7, 32}, {4, 64, 5}, {9, 33, 48},
				} {
					lim := plan.Limits{Tokens: c.tokens, Seqs: 1, Rows: 1, PageTokens: c.pageTokens, Pages: []int{positions/c.pageTokens + 2}, Cache: d}
					r := newAttentionRig(t, tr, c.threads, 1, a, lim)
					r.set(1, positions)
					// Keys and values that are not stored yet are NaN.
					for i := range r.pools[0].pages {
						page := r.pools[0].page(int32(i))
						for j := range page {
							page[j] = 0xff
						}
					}
					got := r.attendAll(c.tokens, q, k, v)
					if want == nil {
						want = got
					}
					for p := range want {
						if !slices.Equal(got[p], want[p]) {
							t.Fatalf("%v, %v cache, %d threads, steps of %d tokens, pages of %d: position %d has other bits: %v, want %v",
								a, d, c.threads, c.tokens, c.pageTokens, p, got[p][:4], want[p][:4])
						}
					}
				}
			}
		}
	})
}

// A token does not see later tokens, in its tile or not.
func TestAttentionLater(t *testing.T) {
	const positions = 300
	eachTier(t, func(t *testing.T, tr tier) {
		for _, a := range shapes {
			lim := plan.Limits{Tokens: positions, Seqs: 1, Rows: 1, PageTokens: 16, Pages: []int{positions/16 + 1}, Cache: tensor.F16}
			r := newAttentionRig(t, tr, 1, 1, a, lim)
			r.set(positions, positions)
			n := r.nodes[0]
			run := func() [][]float32 {
				r.do(r.kernels[0])
				var out [][]float32
				for i := range positions {
					out = append(out, slices.Clone(r.row(n.Out, i)))
				}
				return out
			}
			want := run()
			for _, bad := range []int{positions - 1, 261, 17} {
				for _, in := range []plan.Value{n.In[1], n.In[2]} {
					row := r.row(in, bad)
					kept := slices.Clone(row)
					for i := range row {
						row[i] = float32(math.NaN())
					}
					got := run()
					copy(row, kept)
					for p := range positions {
						unseen := p < bad || (a.Window > 0 && p >= bad+a.Window)
						if same := slices.Equal(got[p], want[p]); same != unseen {
							t.Fatalf("%v: NaN at position %d: position %d has the bits it had: %v", a, bad, p, same)
						}
					}
				}
			}
			run()
		}
	})
}

func TestCacheOverflow(t *testing.T) {
	a := shapes[0]
	for _, c := range []struct {
		d    tensor.DType
		x    float32
		lost bool
	}{
		{tensor.F16, 65504, false}, {tensor.F16, -65519, false}, {tensor.F16, 65520, true}, {tensor.F16, -1e9, true},
		{tensor.F16, float32(math.Inf(1)), false}, {tensor.F16, float32(math.NaN()), false},
		{tensor.Q8_0, 8e6, false}, {tensor.Q8_0, -9e6, true}, {tensor.Q8_0, float32(math.Inf(-1)), false}, {tensor.Q8_0, float32(math.NaN()), false},
		{tensor.F8_E4M3, 57344, false}, {tensor.F8_E4M3, -57376, true}, {tensor.F8_E4M3, 3e38, true},
		{tensor.F8_E4M3, float32(math.Inf(1)), false}, {tensor.F8_E4M3, float32(math.NaN()), false},
		{tensor.F32, 3e38, false},
	} {
		for in := 1; in <= 2; in++ {
			eachTier(t, func(t *testing.T, tr tier) {
				r := newAttentionRig(t, tr, 2, 2, a, plan.Limits{Tokens: 3, Seqs: 1, Rows: 1, PageTokens: 4, Pages: []int{1}, Cache: c.d})
				r.set(3, 3)
				r.do(r.kernels[0])
				r.row(r.nodes[1].In[in], 1)[a.HeadDim*2-1] = c.x
				r.do(r.kernels[1])
				if lost := r.overflow[0] == 1; lost != c.lost {
					t.Errorf("%v in an %v cache: overflow in layer %d", c.x, c.d, r.overflow[0])
				}
			})
		}
	}
}

// A Q8_0 cache returns values near those stored, however small.
func TestQuantizeHead(t *testing.T) {
	for _, size := range []float64{0, 1e-9, 1e-7, 2e-6, 1e-4, 1, 1000, 8e6} {
		x, q, scales := make([]float32, 64), make([]int8, 64*3), make([]uint16, 2*3)
		for i := range x {
			x[i] = float32(size * math.Sin(float64(i)*1.3))
		}
		if !quantizeHead(q, scales, 3, x) {
			t.Errorf("%g cannot be kept", size)
		}
		for i, v := range x {
			got := float64(int(q[i*3])) * float64(tensor.F16ToF32(scales[i/32*3]))
			// Half a step, or half of the smallest float16 if that is more.
			if diff := math.Abs(got - float64(v)); diff > max(size/127*0.51+127*3e-8*0.004, 3.1e-8) {
				t.Errorf("%v about %g is kept as %v", v, size, got)
			}
		}
	}
}

func TestCacheMustFit(t *testing.T) {
	for dim, fitting := range map[int][]tensor.DType{
		24: {tensor.F32, tensor.F16},
		48: {tensor.F32, tensor.F16, tensor.F8_E4M3},
		64: {tensor.F32, tensor.F16, tensor.F8_E4M3, tensor.Q8_0},
	} {
		p, err := plan.Build(func(b *plan.Builder) {
			x := b.Embed(&tensor.Tensor{Name: "embed", DType: tensor.F32, Shape: []int{1, dim}, Data: make([]byte, 4*dim)})
			st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: dim, ValueDim: dim})
			y := b.Pick(b.Attention(x, x, x, nil, st, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: dim, Scale: 1}))
			b.Output(y, y)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0, tensor.F8_E4M3, tensor.F8_E5M2, tensor.Q4_0, tensor.BF16} {
			exe, err := New(1).Compile(context.Background(), p, plan.Limits{Tokens: 1, Seqs: 1, Rows: 1, PageTokens: 32, Pages: []int{1}, Cache: d}, nil)
			if (err == nil) != slices.Contains(fitting, d) {
				t.Errorf("heads of %d in an %v cache: %v", dim, d, err)
			}
			if err == nil {
				_ = exe.Close()
			}
		}
	}
}

// A step allocates nothing once its pages are allocated.
func TestAttentionAllocates(t *testing.T) {
	for i, threads := range []int{1, 3, 3} {
		for _, tokens := range []int{1, 20} {
			r := newAttentionRig(t, tiers()[0], threads, 1, shapes[i%2], plan.Limits{Tokens: tokens, Seqs: 1, Rows: 1, PageTokens: 32, Pages: []int{20}, Cache: tensor.F16})
			r.set(tokens, 600)
			if n := testing.AllocsPerRun(50, func() { r.do(r.kernels[0]) }); n != 0 {
				t.Errorf("%d threads, %d tokens: %v allocations", threads, tokens, n)
			}
		}
	}
}
