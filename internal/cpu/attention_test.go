package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// guardedFloats returns n float32 followed by memory that must not be read.
func guardedFloats(t testing.TB, n int) []float32 { return words[float32](guarded(t, 4*n)) }

// cacheMatrix is a random matrix in the layout of a cache, with numbers and scales followed by
// memory that must not be read, and in float64. Numbers along the head share a scale, 32 or with
// F8_E4M3 all: down a column of keys, along a row of values.
type cacheMatrix struct {
	stretch
	value func(row, col int) float64
}

func newCacheMatrix(t testing.TB, rng *rand.Rand, d tensor.DType, rows, cols, width int, keys bool) cacheMatrix {
	size := map[tensor.DType]int{tensor.F32: 4, tensor.F16: 2, tensor.Q8_0: 1, tensor.F8_E4M3: 1}[d]
	n := (rows-1)*width + cols
	m := cacheMatrix{stretch: stretch{numbers: guarded(t, n*size+pageSlack), width: width}}
	m.next = m.numbers
	for i := range n {
		switch v := rng.NormFloat64(); d {
		case tensor.F32:
			words[float32](m.numbers)[i] = float32(v)
		case tensor.F16:
			words[uint16](m.numbers)[i] = tensor.F32ToF16(float32(v))
		default:
			m.numbers[i] = byte(rng.Uint32())
			if d == tensor.F8_E4M3 && m.numbers[i]&0x7f == 0x7f {
				m.numbers[i]-- // caches have no NaN
			}
		}
	}
	if scales := map[tensor.DType][2]int{
		tensor.Q8_0:    {(rows-1)*width/cacheBlock + cols/cacheBlock, (rows/cacheBlock-1)*width + cols},
		tensor.F8_E4M3: {rows, cols},
	}[d]; scales != [2]int{} {
		n := scales[0] // of values
		if keys {
			n = scales[1]
		}
		m.scales = guarded(t, 2*n+pageSlack)
		for i := range n {
			scale := float32(rng.Float64() / 127)
			if d == tensor.F8_E4M3 {
				scale = float32(math.Exp2(float64(-rng.IntN(20))))
			}
			words[uint16](m.scales)[i] = tensor.F32ToF16(scale)
		}
	}
	m.value = func(row, col int) float64 {
		i := row*width + col
		switch d {
		case tensor.F32:
			return float64(words[float32](m.numbers)[i])
		case tensor.F16:
			return float64(tensor.F16ToF32(words[uint16](m.numbers)[i]))
		case tensor.F8_E4M3:
			at := row
			if keys {
				at = col
			}
			var v [1]float32
			if err := tensor.Dequantize(d, v[:], m.numbers[i:i+1]); err != nil {
				t.Fatal(err)
			}
			return float64(v[0]) / 256 * float64(tensor.F16ToF32(words[uint16](m.scales)[at]))
		}
		at := i / cacheBlock
		if keys {
			at = row/cacheBlock*width + col
		}
		return float64(int8(m.numbers[i])) * float64(tensor.F16ToF32(words[uint16](m.scales)[at]))
	}
	return m
}

// nearTo fails unless got is within tol of want.
func nearTo(t *testing.T, what func() string, got float32, want, tol float64) {
	if !(math.Abs(float64(got)-want) <= tol) {
		t.Helper()
		t.Fatalf("%s: %v, want %v", what(), got, want)
	}
}

var cacheTypes = []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0, tensor.F8_E4M3}

func eachTier(t *testing.T, f func(t *testing.T, tr tier)) {
	for _, tr := range tiers() {
		t.Run(tr.name, func(t *testing.T) { f(t, tr) })
	}
}

func TestScores(t *testing.T) {
	eachTier(t, func(t *testing.T, tr tier) {
		for _, d := range cacheTypes {
			for _, dim := range []int{1, 3, 32, 48, 64, 96} {
				if dim%plan.HeadUnit(d) != 0 {
					continue
				}
				for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 48, 64, 255, 256} {
					rows := 1 + (n+dim)%15
					rng := rand.New(rand.NewPCG(uint64(n), uint64(dim)))
					k := newCacheMatrix(t, rng, d, dim, n, n+rng.IntN(5), true)
					k.n = n
					q := guardedFloats(t, dim*rows)
					for i := range q {
						q[i] = float32(rng.NormFloat64())
					}
					score := guardedFloats(t, rows*scoreStride)
					tr.attention.caches[d].scores(score, q, rows, rows, &k.stretch, dim)
					for r := range rows {
						for p := range n {
							want, size := 0.0, 1.0
							for i := range dim {
								v := float64(q[i*rows+r]) * k.value(i, p)
								want, size = want+v, size+math.Abs(v)
							}
							nearTo(t, func() string {
								return fmt.Sprintf("%v, %d positions, %d rows of %d: row %d, position %d", d, n, rows, dim, r, p)
							}, score[r*scoreStride+p], want, 1e-6*size)
						}
					}
				}
			}
		}
	})
}

func TestWeighted(t *testing.T) {
	eachTier(t, func(t *testing.T, tr tier) {
		for _, d := range cacheTypes {
			for _, dim := range []int{1, 5, 8, 12, 16, 17, 32, 33, 48, 64, 80, 96, 128, 160, 256, 288, 300} {
				if dim%plan.HeadUnit(d) != 0 {
					continue
				}
				for _, n := range []int{1, 2, 16, 31, 256} {
					rows := 1 + (n+dim)%9
					rng := rand.New(rand.NewPCG(uint64(n), uint64(dim)))
					v := newCacheMatrix(t, rng, d, n, dim, dim, false)
					v.n = n
					width := headWidth(&plan.AttentionAttr{HeadDim: dim})
					weight, sum := guardedFloats(t, rows*scoreStride), guardedFloats(t, rows*width)
					for i := range weight {
						weight[i] = rng.Float32()
					}
					for i := range sum {
						sum[i] = float32(rng.NormFloat64())
					}
					before := slices.Clone(sum)
					tr.attention.caches[d].weighted(sum, weight, rows, width, &v.stretch, dim)
					for r := range rows {
						for i := range dim {
							want := float64(before[r*width+i])
							for p := range n {
								want += float64(weight[r*scoreStride+p]) * v.value(p, i)
							}
							nearTo(t, func() string {
								return fmt.Sprintf("%v, %d positions, %d rows of %d: row %d, element %d", d, n, rows, dim, r, i)
							}, sum[r*width+i], want, 1e-6*float64(n+3))
						}
					}
				}
			}
		}
	})
}

// A row's bits do not depend on the number of rows.
func TestRowsAlone(t *testing.T) {
	const n, dim, rows = 32, 64, 15
	eachTier(t, func(t *testing.T, tr tier) {
		for _, d := range cacheTypes {
			rng := rand.New(rand.NewPCG(1, 2))
			k, v := newCacheMatrix(t, rng, d, dim, n, n, true), newCacheMatrix(t, rng, d, n, dim, dim, false)
			k.n, v.n = n, n
			q := make([]float32, dim*rows)
			for i := range q {
				q[i] = float32(rng.NormFloat64())
			}
			score, alone := make([]float32, rows*scoreStride), make([]float32, rows*scoreStride)
			sum, sumAlone := make([]float32, rows*dim), make([]float32, rows*dim)
			c := tr.attention.caches[d]
			c.scores(score, q, rows, rows, &k.stretch, dim)
			c.weighted(sum, score, rows, dim, &v.stretch, dim)
			for r := range rows {
				c.scores(alone[r*scoreStride:], q[r:], 1, rows, &k.stretch, dim)
				c.weighted(sumAlone[r*dim:], alone[r*scoreStride:], 1, dim, &v.stretch, dim)
			}
			if !slices.Equal(sum, sumAlone) {
				t.Errorf("%v: rows alone have other bits", d)
			}
		}
	})
}

// ulps returns the distance of got from want in units in the last place of a float32.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	return math.Abs(float64(got)-want) / (float64(math.Nextafter32(w, math.MaxFloat32)) - float64(w))
}

func TestSoftWeights(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	eachTier(t, func(t *testing.T, tr tier) {
		score, top, total := guardedFloats(t, 2*scoreStride+256), guardedFloats(t, 3), guardedFloats(t, 3)
		run := func(n int, rows ...[]float32) {
			for r, x := range rows {
				copy(score[r*scoreStride:], x)
			}
			tr.attention.softWeights(score, n, len(rows), top, total)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for n := 16; n <= 256; n += 16 {
			for range 40 {
				var rows [3][]float32
				for r := range rows {
					for range n {
						rows[r] = append(rows[r], 50-104*rng.Float32())
					}
					rows[r][rng.IntN(n)] = 50
				}
				run(n, rows[:]...)
				for r := range rows {
					if top[r] != 50 {
						t.Fatalf("the largest of row %d is %v, want 50", r, top[r])
					}
					sum := 0.0
					for i, x := range rows[r] {
						got, want := score[r*scoreStride+i], math.Exp(float64(x-50))
						sum += float64(got)
						if u := ulps(got, want); !(u <= 2 || got == 0 && want < 1.1755e-38) { // 0 for results below the normal numbers
							t.Fatalf("exp(%v) = %v, %v units from %v", x-50, got, u, want)
						}
					}
					nearTo(t, func() string { return "sum" }, total[r], sum, 1e-6*sum)
				}
			}
		}
		special := make([]float32, 16)
		for i := range special {
			special[i] = -inf
		}
		special[3], special[4], special[5], special[6] = 0, -80, -110, -1e30
		run(16, special)
		for i, want := range []float32{0, 0, 0, 1, float32(math.Exp(-80)), 0, 0, 0} {
			if score[i] != want {
				t.Errorf("exp(%v) = %v, want %v", special[i], score[i], want)
			}
		}
		for _, x := range []float32{nan, inf} {
			special[9] = x
			if run(16, special); total[0] == total[0] {
				t.Errorf("%v among the scores: their sum is %v", x, total[0])
			}
		}
	})
}

func TestCapScores(t *testing.T) {
	inf := math.Inf(1)
	for _, limit := range []float64{1e-3, 0.7, 2, 50, 1e6, 1e30} {
		for _, u := range []float64{0, 1e-30, 1e-11, 1e-6, 9.9e-5, 1.1e-4, 1e-3, 0.02, 0.3, 1, 3, 9, 20, 1000, inf} {
			for _, sign := range []float64{1, -1} {
				score := []float32{float32(sign * u * limit)}
				want := limit * math.Tanh(float64(score[0])/limit)
				if capScores(score, limit); ulps(score[0], want) > 1 {
					t.Errorf("%g times %g capped to it: %v, want %v", limit, sign*u, score[0], want)
				}
			}
		}
	}
	score := []float32{float32(math.NaN())}
	if capScores(score, 2); score[0] == score[0] {
		t.Errorf("NaN is capped to %v", score[0])
	}
}

func TestBlendAndScale(t *testing.T) {
	eachTier(t, func(t *testing.T, tr tier) {
		rng := rand.New(rand.NewPCG(5, 6))
		for n := 1; n <= 70; n++ {
			x, y, z := guardedFloats(t, n), guardedFloats(t, n), guardedFloats(t, n)
			for i := range x {
				x[i], y[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
			}
			before := slices.Clone(y)
			tr.attention.scale(z, x, 1.75)
			for i := range z {
				if z[i] != x[i]*1.75 {
					t.Fatalf("%d values: %v times 1.75 is %v", n, x[i], z[i])
				}
			}
			if n%headUnit != 0 {
				continue
			}
			tr.attention.blend(y, x, 0.3, 0.6)
			for i := range y {
				nearTo(t, func() string { return "blend" }, y[i], 0.3*float64(before[i])+0.6*float64(x[i]), 1e-6)
			}
		}
	})
}

func TestPositives(t *testing.T) {
	nan := float32(math.NaN())
	eachTier(t, func(t *testing.T, tr tier) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, rows := range []int{1, 2, 5, 64} {
			score, weight := guardedFloats(t, rows*scoreStride), guardedFloats(t, rows)
			for i := range score {
				score[i] = float32(rng.NormFloat64())
			}
			for i := range weight {
				weight[i] = float32(rng.NormFloat64())
			}
			for n := 1; n <= contextSegment; n += 1 + rng.IntN(5) {
				sum := guardedFloats(t, scoreStride)
				bad, at := rng.IntN(rows), rng.IntN(n)
				old := score[bad*scoreStride+at]
				score[bad*scoreStride+at] = nan
				tr.attention.positives(sum, score, weight, n)
				score[bad*scoreStride+at] = old
				for p, got := range sum[:n] {
					want, size := 0.0, 0.0
					for r, w := range weight {
						term := float64(w) * max(0, float64(score[r*scoreStride+p]))
						want, size = want+term, size+math.Abs(term)
					}
					if p == at && got == got {
						t.Fatalf("the sum of %d rows with NaN is %v", rows, got)
					} else if p != at {
						nearTo(t, func() string { return fmt.Sprintf("sum %d of %d, %d rows", p, n, rows) }, got, want, 1e-5*size)
					}
				}
			}
		}
	})
}

func TestHalve(t *testing.T) {
	eachTier(t, func(t *testing.T, tr tier) {
		rng := rand.New(rand.NewPCG(7, 8))
		for n := 1; n <= 40; n++ {
			x, y := guardedFloats(t, n), words[uint16](guarded(t, 2*n))
			for i := range x {
				x[i] = math.Float32frombits(rng.Uint32())
				if i%2 == 0 {
					x[i] = float32(rng.NormFloat64() * math.Exp2(rng.Float64()*44-26))
				}
			}
			tr.attention.halve(y, x)
			for i, v := range x {
				if want := tensor.F32ToF16(v); y[i] != want && v == v {
					t.Fatalf("%v (%#x) becomes %#x, want %#x", v, math.Float32bits(v), y[i], want)
				} else if got := tensor.F16ToF32(y[i]); v != v && got == got {
					t.Fatalf("NaN becomes %v", got)
				}
			}
		}
	})
}

// An attentionRig is a program with only layers of attention.
type attentionRig struct {
	*executable
	nodes   []*plan.Node
	kernels [][]kernel
}

func newAttentionRig(t testing.TB, tr tier, threads, layers int, a attentionShape, lim plan.Limits) *attentionRig {
	t.Helper()
	k, v := a.stored()
	wk := &tensor.Tensor{Name: "k", DType: tensor.Q8_0, Shape: []int{k, a.Heads * a.HeadDim}}
	wv := &tensor.Tensor{Name: "v", DType: tensor.Q8_0, Shape: []int{v, a.Heads * a.HeadDim}}
	size := func(w *tensor.Tensor) *tensor.Tensor {
		n, err := w.DType.Size(w.Shape[0] * w.Shape[1])
		if err != nil {
			t.Fatal(err)
		}
		w.Data = make([]byte, n)
		return w
	}
	size(wk)
	size(wv)
	var sinks *tensor.Tensor
	if a.sinks {
		sinks = &tensor.Tensor{Name: "sinks", DType: tensor.F32, Shape: []int{a.Heads}, Data: make([]byte, 4*a.Heads)}
		for i, logits := 0, words[float32](sinks.Data); i < a.Heads; i++ {
			logits[i] = float32(i%5) - 2
		}
	}
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(size(&tensor.Tensor{Name: "embed", DType: tensor.F32, Shape: []int{2, a.Heads * a.HeadDim}}))
		last := x
		for i := range layers {
			b.Layer(i)
			k, v := b.Linear(x, wk, nil), b.Linear(x, wv, nil)
			state := plan.State{Name: fmt.Sprint("kv", i), Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.HeadDim, Window: a.Window}
			if a.Latent {
				state.ValueDim = 0
				last = b.LatentAttention(x, k, v, sinks, b.State(state), a.AttentionAttr)
				continue
			}
			x = b.Attention(x, k, v, sinks, b.State(state), a.AttentionAttr)
			last = x
		}
		y := b.Pick(last)
		b.Output(y, y)
	})
	if err != nil {
		t.Fatal(err)
	}
	back := New(threads)
	back.tier, back.threads = tr, threads
	exe, err := back.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exe.Close() })
	r := &attentionRig{executable: exe.(*executable)}
	for i, s := range r.code.stages {
		if n := s.Node(); n.Op == plan.Attention {
			r.nodes, r.kernels = append(r.nodes, n), append(r.kernels, r.code.kernels[i])
		}
	}
	return r
}

// set makes a step of tokens of one sequence, up to position end, after a past of random numbers.
func (r *attentionRig) set(tokens, end int) {
	rng := rand.New(rand.NewPCG(9, 10))
	pages := (end + r.lim.PageTokens - 1) / r.lim.PageTokens
	b := &plan.Batch{Tokens: make([]int32, tokens), Start: []int32{0, int32(tokens)}, Lengths: []int32{int32(end)}}
	for i := range tokens {
		b.Positions = append(b.Positions, int32(end-tokens+i))
	}
	table := plan.PageTable{Start: []int32{0, int32(pages)}, First: []int32{0}}
	for i := range pages {
		table.Pages = append(table.Pages, int32(i))
	}
	rng.Shuffle(pages, func(i, j int) { table.Pages[i], table.Pages[j] = table.Pages[j], table.Pages[i] })
	b.Tables = []plan.PageTable{table}
	r.batch = b
	r.resolve(b)
	r.overflow = fill(r.overflow, 1, -1)
	noise := make([]float32, 1<<16)
	for i := range noise {
		noise[i] = float32(rng.NormFloat64())
	}
	for i := range r.code.buffers {
		for j := range r.code.buffers[i] {
			r.code.buffers[i][j] = noise[rng.IntN(len(noise))]
		}
	}
	for state := range r.pools {
		pool := r.kv(state)
		r.reach(pool.pagePool)
		d := pool.state.HeadDim
		past, half := r.past(pool, 0), make([]uint16, d)
		for pos := range end {
			for g := range pool.state.KVHeads {
				k, v := noise[rng.IntN(len(noise)-d):], noise[rng.IntN(len(noise)-d):]
				if pool.rowKeys() {
					past.slot(pos, g).storeRow(r.tier.attention, k[:d])
					continue
				}
				past.slot(pos, g).store(r.tier.attention, k[:d], v[:d], half)
			}
		}
	}
}

func benchmarkAttention(b *testing.B, tokens, end, layers int) {
	benchmarkShape(b, plan.AttentionAttr{Heads: 32, KVHeads: 8, HeadDim: 64, Scale: 0.125}, tokens, end, layers)
}

func benchmarkShape(b *testing.B, attr plan.AttentionAttr, tokens, end, layers int) {
	a := attentionShape{AttentionAttr: attr}
	for _, d := range cacheTypes {
		for _, tr := range tiers() {
			for _, threads := range []int{1, 2} {
				if threads > Threads(0) || threads > 1 && tr.name != tiers()[0].name {
					continue
				}
				b.Run(fmt.Sprintf("%v/%s/%d", d, tr.name, threads), func(b *testing.B) {
					lim := plan.Limits{Tokens: tokens, Seqs: 1, Rows: 1, PageTokens: 32, Pages: []int{(end + 31) / 32}, Cache: d}
					r := newAttentionRig(b, tr, threads, layers, a, lim)
					r.set(tokens, end)
					products := 0
					for i := range tokens {
						products += (end - i) * a.Heads * (a.HeadDim + a.Values())
					}
					b.SetBytes(int64(end * r.pools[0].state.RowBytes(d)))
					b.ReportAllocs()
					b.ResetTimer()
					for i := range b.N {
						r.do(r.kernels[i%layers])
					}
					b.ReportMetric(float64(products)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
				})
			}
		}
	}
}

func BenchmarkAttentionKernels(b *testing.B) {
	const n, dim, rows, all = 32, 64, 4, 256
	rng := rand.New(rand.NewPCG(11, 12))
	q, score := make([]float32, dim*rows), make([]float32, rows*scoreStride)
	top, total, sum := make([]float32, rows), make([]float32, rows), make([]float32, rows*dim)
	halves := make([]uint16, dim)
	for _, tr := range tiers() {
		kernels := tr.attention
		run := func(name string, bytes int, f func()) {
			b.Run(name+"/"+tr.name, func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					f()
				}
			})
		}
		for _, d := range cacheTypes {
			k, v := newCacheMatrix(b, rng, d, dim, n, n, true), newCacheMatrix(b, rng, d, n, dim, dim, false)
			k.n, v.n = n, n
			size, err := d.Size(n * dim)
			if err != nil {
				b.Fatal(err)
			}
			run(fmt.Sprintf("scores/%v", d), size, func() { kernels.caches[d].scores(score, q, rows, rows, &k.stretch, dim) })
			run(fmt.Sprintf("weighted/%v", d), size, func() { kernels.caches[d].weighted(sum, score, rows, dim, &v.stretch, dim) })
		}
		run("softWeights", 4*rows*all, func() { kernels.softWeights(score, all, rows, top, total) })
		run("blend", 4*dim, func() { kernels.blend(sum[:dim], q[:dim], 0.5, 0.5) })
		run("scale", 4*dim, func() { kernels.scale(sum[:dim], q[:dim], 0.5) })
		run("halve", 4*dim, func() { kernels.halve(halves, q[:dim]) })
	}
}

// The past of all layers together exceeds the caches.
func BenchmarkAttentionDecode512(b *testing.B)  { benchmarkAttention(b, 1, 512, 64) }
func BenchmarkAttentionDecode8192(b *testing.B) { benchmarkAttention(b, 1, 8192, 6) }

// The shape of DeepSeek-V2-Lite: 16 heads share a row.
func BenchmarkLatentDecode8192(b *testing.B)      { benchmarkShape(b, latentLite, 1, 8192, 6) }
func BenchmarkLatentPrefillFrom3840(b *testing.B) { benchmarkShape(b, latentLite, 256, 4096, 1) }

var latentLite = plan.AttentionAttr{Heads: 16, KVHeads: 1, HeadDim: 576, ValueDim: 512, Latent: true, Scale: 0.1}

func BenchmarkAttentionPrefill(b *testing.B)         { benchmarkAttention(b, 256, 256, 2) }
func BenchmarkAttentionPrefillFrom3840(b *testing.B) { benchmarkAttention(b, 256, 4096, 1) }
