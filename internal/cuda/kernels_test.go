package cuda

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// apart returns a program whose operations cannot be fused.
func apart(t *testing.T) *plan.Program {
	rng := newRand()
	w := func(d tensor.DType, shape ...int) *tensor.Tensor { return plantest.Weight(rng, "w", d, 1, shape...) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(w(tensor.F32, decoderVocab, 64))
		x = b.Add(b.GLU(b.Rope(x, plan.RopeAttr{HeadDim: 32, Dims: 32, Freqs: make([]float64, 16), Scale: 1}), x, plan.GLUAttr{Act: plan.GELU}), x)
		h := b.Pick(b.LayerNorm(x, w(tensor.F32, 64), nil, 1e-5))
		b.Output(h, b.Linear(h, w(tensor.Q8_0, decoderVocab, 64), nil))
	})
}

// gated returns a program whose gated unit reads a value that no norm has written, and which reads
// parts of a second table.
func gated(t *testing.T, d tensor.DType) *plan.Program {
	rng := newRand()
	w := func(rows int) *tensor.Tensor { return plantest.Weight(rng, "w", d, 1, rows, 256) }
	return program(t, func(b *plan.Builder) {
		x := b.Add(b.Embed(w(decoderVocab)), b.EmbedPart(w(8), 0, 256))
		h := b.Pick(b.GLU(b.Linear(x, w(256), nil), b.Linear(x, w(256), nil), plan.GLUAttr{Act: plan.SiLU}))
		b.Output(h, b.Linear(h, w(decoderVocab), nil))
	})
}

// multiplying returns a program with a product and a gated unit of all tokens.
func multiplying(t *testing.T, d tensor.DType) *plan.Program {
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", d, 0.1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Linear(b.Embed(plantest.Weight(rng, "table", tensor.F32, 1, decoderVocab, 256)), w(2048, 256), nil)
		h := b.Pick(b.GLU(b.Linear(x, w(512, 2048), nil), b.Linear(x, w(512, 2048), nil), plan.GLUAttr{Act: plan.SiLU}))
		b.Output(h, b.Linear(h, plantest.Weight(rng, "head", tensor.F32, 1, decoderVocab, 512), nil))
	})
}

// mixed returns a program with the given number of mixtures of experts. If joined is true, gate and
// up have the same format.
func mixed(t *testing.T, d tensor.DType, joined bool, layers int) *plan.Program {
	const experts, width = 4, 256
	rng := newRand()
	w := func(d tensor.DType, rows int) *tensor.Tensor { return plantest.Weight(rng, "w", d, 0.06, rows, width) }
	list := func(d tensor.DType) (all []*tensor.Tensor) {
		for range experts {
			all = append(all, w(d, width))
		}
		return all
	}
	up := d
	if !joined {
		up = tensor.F16
		if weights.LaidAs(d, &plan.Limits{Activations: tensor.F16}) == tensor.F16 {
			up = tensor.Q8_0
		}
	}
	return program(t, func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "table", tensor.F32, 1, decoderVocab, width))
		for range layers {
			a := plan.ExpertsAttr{Route: plan.RouteAttr{Used: 2, Scale: 1}, Gate: list(d), Up: list(up), Down: list(d)}
			x = b.Add(b.Experts(x, b.Linear(x, w(tensor.F32, experts), nil), nil, a), x)
		}
		h := b.Pick(x)
		b.Output(h, b.Linear(h, w(d, decoderVocab), nil))
	})
}

// encoding returns a program that reads whole sequences and classifies them into two labels.
func encoding(t *testing.T, headDim int) *plan.Program {
	const heads, kvHeads = 4, 2
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.Q8_0, 1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Add(b.Embed(w(decoderVocab, heads*headDim)), b.Position(w(testContext, heads*headDim), 0))
		x = b.Add(x, b.Position(w(2, heads*headDim), 1))
		k, v := b.Linear(x, w(kvHeads*headDim, heads*headDim), nil), b.Linear(x, w(kvHeads*headDim, heads*headDim), nil)
		y := b.Bidirectional(x, k, v, plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 1})
		y = b.Scale(b.Softcap(b.Activate(y, plan.GELU), 20), 0.5)
		h := b.PickMean(b.GLU(b.Linear(y, w(1, heads*headDim), nil), y, plan.GLUAttr{Act: plan.Sigmoid}))
		b.Output(h, b.Linear(h, w(2, heads*headDim), nil))
	})
}

// attending returns a program whose attention has many query heads, of that dimension, for each key
// head.
func attending(t *testing.T, headDim int) *plan.Program {
	const heads, kvHeads = 16, 2
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(w(decoderVocab, heads*headDim))
		k, v := b.Linear(x, w(kvHeads*headDim, heads*headDim), nil), b.Linear(x, w(kvHeads*headDim, heads*headDim), nil)
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: headDim})
		h := b.Pick(b.Attention(x, k, v, nil, s, plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 1}))
		b.Output(h, b.Linear(h, w(decoderVocab, heads*headDim), nil))
	})
}

// growing returns a program whose queries grow with their position, with a gate for each head and
// maps that no product's stage does.
func growing(t *testing.T) *plan.Program {
	const heads, headDim = 4, 64
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F16, 1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(w(decoderVocab, heads*headDim))
		growth := plantest.Weight(rng, "growth", tensor.F32, 1, testContext, 1)
		q, k := b.GLU(b.Position(growth, 0), x, plan.GLUAttr{Act: plan.ReLU}), b.Clamp(b.Linear(x, w(heads*headDim, heads*headDim), nil), 3)
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: heads, HeadDim: headDim, ValueDim: headDim})
		y := b.Attention(q, k, x, nil, s, plan.AttentionAttr{Heads: heads, KVHeads: heads, HeadDim: headDim, Scale: 1})
		y = b.GLU(b.Softplus(b.Linear(x, w(heads, heads*headDim), nil)), y, plan.GLUAttr{Act: plan.ReLU})
		h := b.Pick(b.XIELU(b.Linear(y, w(heads*headDim, heads*headDim), nil), plan.Curve{P: 0.8, N: 0.8, Beta: 0.5, Eps: -1e-6}))
		b.Output(h, b.Linear(h, w(decoderVocab, heads*headDim), nil))
	})
}

// rowwise returns a program of the operations on rows that no other program has.
func rowwise(t *testing.T) *plan.Program {
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F16, 1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(w(decoderVocab, 64))
		x = b.Temper(b.Mul(x, b.Rescale(b.Sparsify(x, 1), x, 1)), plan.TemperAttr{By: 1, Every: 8})
		c := b.Connect(b.Linear(x, w(8, 64), nil), plantest.Weight(rng, "scale", tensor.F32, 1, 3), plantest.Weight(rng, "base", tensor.F32, 1, 8), plan.ConnectAttr{Streams: 2, Iterations: 3})
		h := b.Pick(b.Concat(b.Mix(c, 1, x, x), x))
		b.Output(h, b.Linear(h, w(decoderVocab, 128), nil))
	})
}

// attendingToLatents returns a program of attention to latent rows with so many values. Its heads are
// so many that in a step of 260 tokens a block has all segments of two tokens, or of one with little
// shared memory, and in a step of 8 a block has one segment.
func attendingToLatents(t *testing.T, values int) *plan.Program {
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 0.1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "embed", tensor.F32, 1, decoderVocab, values))
		a := plan.AttentionAttr{Heads: 66, KVHeads: 1, HeadDim: values + 32, ValueDim: values, Scale: 0.15}
		y := b.LatentAttention(b.Linear(x, w(66*a.HeadDim, values), nil), x, b.Linear(x, w(32, values), nil), nil, b.State(plan.State{Name: "latent", KVHeads: 1, HeadDim: a.HeadDim}), a)
		h := b.Pick(b.Add(x, b.Linear(y, w(values, b.Cols(y)), nil)))
		b.Output(h, b.Linear(h, w(decoderVocab, values), nil))
	})
}

// attendingInAllForms returns a program of attention with heads that many query heads share, few and
// none, of latent rows, values of another length, chunks and another layer, with a rotation of a part
// of long heads and products by head; and of attention to chosen positions and compressed rows.
func attendingInAllForms(t *testing.T) *plan.Program {
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 0.1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "embed", tensor.F32, 1, decoderVocab, 64))
		for _, heads := range []int{1, 4, 16} {
			a := plan.AttentionAttr{Heads: heads, KVHeads: 1, HeadDim: 288, ValueDim: 64, Scale: 0.06}
			q := b.Rope(b.Linear(x, w(heads*288, 64), nil), plan.RopeAttr{HeadDim: 288, First: 256, Dims: 32, Freqs: make([]float64, 16), Scale: 1})
			var y plan.Value
			if heads == 4 {
				s := b.State(plan.State{Name: "latent", KVHeads: 1, HeadDim: 288})
				y = b.LatentAttention(q, x, b.Linear(x, w(224, 64), nil), nil, s, a)
				y = b.HeadLinear(y, []*tensor.Tensor{w(32, 64), w(32, 64), w(32, 64), w(32, 64)})
			} else {
				a.Chunk = 30 * (heads % 2)
				s := b.State(plan.State{Name: "kv", KVHeads: 1, HeadDim: 288, ValueDim: 64, Chunk: a.Chunk})
				y = b.Attention(q, b.Linear(x, w(288, 64), nil), x, nil, s, a)
				y = b.Add(y, b.AttentionTo(q, nil, s, a))
			}
			x = b.Add(x, b.Linear(y, w(64, b.Cols(y)), nil))
		}
		index := b.State(plan.State{Name: "index", KVHeads: 1, HeadDim: 32})
		chosen := b.Select(b.Linear(x, w(64, 64), nil), b.Linear(x, w(32, 64), nil), b.Linear(x, w(2, 64), nil), index, plan.SelectAttr{Heads: 2, HeadDim: 32, Top: 20})
		a := plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.1, Top: 20}
		y := b.SparseAttention(b.Linear(x, w(4*96, 64), nil), x, b.Linear(x, w(32, 64), nil), chosen, nil, b.State(plan.State{Name: "sparse", KVHeads: 1, HeadDim: 96}), a)
		x = b.Add(x, b.Linear(y, w(64, 4*64), nil))
		joined := plan.CompressAttr{Rate: 4, Overlap: true}
		far := b.Compress(b.Linear(x, w(128, 64), nil), b.Linear(x, w(128, 64), nil), w(4, 128), b.State(joined.State(128)), joined)
		a = plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 64, Scale: 0.1, Window: 20, Rate: 4, Compressed: b.State(plan.State{Name: "far", KVHeads: 1, HeadDim: 64, Every: 4})}
		y = b.CompressedAttention(b.Linear(x, w(4*64, 64), nil), x, far, nil, b.State(plan.State{Name: "near", KVHeads: 1, HeadDim: 64, Window: 20}), a)
		h := b.Pick(b.Add(x, b.Linear(y, w(64, 4*64), nil)))
		b.Output(h, b.Linear(h, w(decoderVocab, 64), nil))
	})
}

// recurring returns a program of recurrent layers with so many columns, and keys of the delta rule of
// so many numbers.
func recurring(t *testing.T, dims, keyDims []int) *plan.Program {
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 0.2, rows, cols) }
	vector := func(n int) *tensor.Tensor { return plantest.Weight(rng, "v", tensor.F32, 1, n) }
	decays := func(shape ...int) *tensor.Tensor {
		v := plantest.Weight(rng, "decays", tensor.F32, 0.3, shape...)
		for i := 3; i < len(v.Data); i += 4 {
			v.Data[i] |= 0x80 // the sign
		}
		return v
	}
	return program(t, func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "embed", tensor.F32, 1, decoderVocab, 64))
		for _, dim := range dims {
			for _, keyDim := range keyDims {
				a := plan.DeltaAttr{KeyHeads: 1, Heads: 2, KeyDim: keyDim, ValueDim: dim, Beta: 1, ByChannel: dim == 32}
				matrices, rows := a.States()
				state, gate, key := b.State(matrices), b.Linear(x, w(2*a.Gates(), 64), nil), x
				if a.Rows = b.State(rows); keyDim != 64 {
					key = b.Linear(x, w(keyDim, 64), nil)
				}
				y := b.Delta(key, key, b.Linear(x, w(2*dim, 64), nil), b.Linear(x, w(2, 64), nil), gate, decays(2), vector(2*a.Gates()), state, a)
				x = b.RMSNorm(b.Add(x, b.Linear(y, w(64, 2*dim), nil)), vector(64), 1e-5)
			}
			s := plan.StateSpaceAttr{Heads: 2, HeadDim: dim, Groups: 1, States: 16, A: decays(2), Skip: vector(2), StepBias: vector(2)}
			y := b.StateSpace(b.Linear(x, w(s.Width(), 64), nil), b.Linear(x, w(2, 64), nil), "h", s)
			x = b.RMSNorm(b.Add(x, b.Linear(y, w(64, 2*dim), nil)), vector(64), 1e-5)
			n := dim / 4
			in, out := b.Linear(x, w(n, 64), nil), b.Linear(x, w(n, 64), nil)
			r := plan.StateSpaceAttr{Heads: 2, HeadDim: dim, Groups: 2, States: 8}
			x = b.Add(x, b.Linear(b.Retention(b.Linear(x, w(r.Width(), 64), nil), decays(2), "r", r), w(64, 2*dim), nil))
			l := plan.LRUAttr{Rate: vector(64), InputBias: vector(64), DecayBias: vector(64)}
			x = b.Add(x, b.LRU(b.RMSNorm(x, vector(64), 1e-5), x, b.Linear(x, w(64, 64), nil), b.State(plan.State{Name: "lru", Kind: plan.PerSequence, Size: 64}), l))
			x = b.Add(x, b.Scan(x, b.Linear(x, w(64, 64), nil), in, out, decays(64, n), vector(64), b.State(plan.State{Name: "scan", Kind: plan.PerSequence, Size: n * 64})))
		}
		h := b.Pick(x)
		b.Output(h, b.Linear(h, w(decoderVocab, 64), nil))
	})
}

// normalizing returns a program with norms of rows of each size that kernels are compiled for.
func normalizing(t *testing.T) *plan.Program {
	rng := newRand()
	w := func(shape ...int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 1, shape...) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(w(decoderVocab, 64))
		for _, width := range []int{2048, 4096, 8192} {
			y := b.RMSNorm(b.Linear(x, w(width, 64), nil), w(width), 1e-5)
			x = b.Add(x, b.Linear(y, w(64, width), nil))
		}
		h := b.Pick(x)
		b.Output(h, b.Linear(h, w(decoderVocab, 64), nil))
	})
}

// heading returns a program with a product by head.
func heading(t *testing.T, d tensor.DType) *plan.Program {
	rng := newRand()
	return program(t, func(b *plan.Builder) {
		w := []*tensor.Tensor{plantest.Weight(rng, "a", d, 0.1, 32, 256), plantest.Weight(rng, "b", d, 0.1, 32, 256)}
		y := b.Pick(b.HeadLinear(b.Embed(plantest.Weight(rng, "table", tensor.F32, 1, decoderVocab, 2*(256+16))), w))
		b.Output(y, b.Linear(y, plantest.Weight(rng, "head", tensor.F32, 1, decoderVocab, 2*(32+16)), nil))
	})
}

// mixing returns a program with products of one input in two formats.
func mixing(t *testing.T, formats [2]tensor.DType) *plan.Program {
	rng := newRand()
	return program(t, func(b *plan.Builder) {
		weight := func(name string, d tensor.DType) *tensor.Tensor {
			return plantest.Weight(rng, name, d, 0.1, decoderVocab, 256)
		}
		x := b.Embed(weight("table", tensor.F32))
		y := b.Pick(b.Concat(b.Linear(x, weight("a", formats[0]), nil), b.Linear(x, weight("b", formats[1]), nil)))
		b.Output(y, y)
	})
}

var entry = regexp.MustCompile(`\.entry\s+(\w+)`)

// Every requested kernel exists, for every format, cache and step size, and is launched with as
// many bytes of arguments as it declares. Every kernel is requested by some program.
func TestKernels(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine does it all, and the race detector makes it slow")
	}
	programs := []*plan.Program{plantest.Model(t, nil), apart(t), growing(t), normalizing(t), rowwise(t), recurring(t, []int{32, 64, 128}, []int{64, 256}), plantest.LatentModel(t, nil), plantest.FormsModel(t, nil), plantest.HeadModel(t)}
	heads := []*plan.Program{attendingInAllForms(t)}
	for _, headDim := range []int{32, 64, 128, 256} {
		heads = append(heads, attending(t, headDim))
	}
	for _, d := range plantest.Dtypes {
		programs = append(programs, decoder(t, d), gated(t, d), multiplying(t, d), mixed(t, d, true, 1), mixed(t, d, false, 1), heading(t, d))
	}
	for _, formats := range weights.Mixed {
		programs = append(programs, mixing(t, formats))
	}
	for _, headDim := range []int{64, 96, 256} {
		programs = append(programs, encoding(t, headDim))
	}
	for _, capability := range []driver.Capability{{Major: 8}, {Major: 9}, {Major: 12}} {
		t.Run(capability.String(), func(t *testing.T) {
			b, f := openFake(t, drivertest.Options{Devices: []drivertest.Device{{Name: "GPU", Memory: 256 << 20, Capability: capability}}}, Options{Eager: true})
			steps := func(p *plan.Program, lim plan.Limits, all ...*plan.Batch) {
				t.Helper()
				x, err := b.Compile(context.Background(), p, lim, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i, step := range all {
					if err := run(x, step); err != nil {
						t.Errorf("step %d: %d tokens of %d sequences: %v", i, len(step.Tokens), len(step.Lengths), err)
					}
				}
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
			use := func(p *plan.Program, base plan.Limits) {
				t.Helper()
				var all []*plan.Batch
				// Sequences of one token and of many, with few rows and many.
				for _, size := range [][2]int{{1, 1}, {1, 5}, {16, 4}, {1, 60}, {2, 60}, {4, 60}, {10, 60}, {2, 1}, {7, 1}, {16, 1}, {17, 1}, {33, 1}, {64, 1}} {
					all = append(all, batchOf(p, size[0], 0, size[1]))
				}
				if p.Head != nil {
					head := batchOf(p, 3, 1, 1)
					head.Head = true
					all = append(all, head)
				}
				adjusted := batchOf(p, 1, 0, 1)
				adjusted.Rows[0].Adjustments = []sample.Adjustment{{Token: 1, Bias: 1}}
				steps(p, plantest.LimitsFor(p, 600, 64, testContext, testPageTokens, base), append(all, adjusted)...)
			}
			for _, p := range heads {
				for _, cache := range plantest.Caches {
					use(p, plan.Limits{Cache: cache})
				}
			}
			for _, p := range programs {
				for _, activations := range b.activations() {
					use(p, plan.Limits{Cache: tensor.F32, Activations: activations})
				}
			}
			// Many sequences of one token, on a device that is small for them.
			all := b.Info.Multiprocessors
			b.Info.Multiprocessors = 4
			for _, p := range heads {
				for _, cache := range plantest.Caches {
					steps(p, plantest.LimitsFor(p, 64, 64, testContext, testPageTokens, plan.Limits{Cache: cache}), batchOf(p, 64, 0, 1))
				}
			}
			b.Info.Multiprocessors = all
			// Steps behind others, with pages of whole runs.
			for _, p := range []*plan.Program{attending(t, 64), attending(t, 128), attending(t, 256), attendingToLatents(t, 64), attendingToLatents(t, 320)} {
				const context, pageTokens, pages = 1024, 32, 1024 / 32
				lim := plantest.LimitsFor(p, 300, 16, context, pageTokens, plan.Limits{Cache: tensor.F16})
				steps(p, lim, batchWith(p, pages, 1, context-1, 1), batchWith(p, pages, 16, context-1, 1), batchWith(p, pages, 1, context-300, 300))
			}
			use(attendingToLatents(t, 64), plan.Limits{Cache: tensor.F16})
			use(plantest.RecurrentModel(t, nil), plan.Limits{Cache: tensor.F16})
			use(plantest.MoEModel(t, nil), plan.Limits{Cache: tensor.F32, Weights: 1, Pinned: 1 << 30}) // experts that are fetched
			if _, err := b.Bandwidth(context.Background()); err != nil {
				t.Error(err)
			}

			misfits := f.Misfits()
			slices.Sort(misfits)
			for _, m := range slices.Compact(misfits) {
				t.Errorf("arguments of the kernel %s", m)
			}
			launched := map[string]bool{}
			for _, l := range f.Launches() {
				launched[l.Kernel] = true
			}
			target := ".sm_80."
			if b.Hopper() {
				target = ".sm_90a."
			}
			files, err := os.ReadDir("kernels/ptx")
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, file := range files {
				family, ours := strings.CutSuffix(file.Name(), target+"ptx.gz")
				if !ours {
					continue
				}
				text, err := kernels.PTX(family, capability.Major, capability.Minor)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range entry.FindAllSubmatch(text, -1) {
					name := string(m[1])
					found++
					if family == "gather" || family == "reduce" || family == "experts" && name == "gather" && !b.Hopper() {
						continue // of devices of a group, see TestGroupBits; and for wide products
					}
					if b.Modules[family] == nil || b.Modules[family].Functions[name] == nil {
						t.Errorf("nobody asks for the kernel %s of %s", name, family)
					} else if !launched[name] {
						t.Errorf("the kernel %s of %s was not launched", name, family)
					}
				}
			}
			if found == 0 {
				t.Errorf("no kernel for %s in kernels/ptx", target)
			}
		})
	}
}

// Only Hopper uses its own features: clusters, and early starts if the driver's graphs support
// them.
func TestHopper(t *testing.T) {
	for _, c := range []struct {
		capability      driver.Capability
		version         driver.Version
		base            bool
		clusters, early bool
	}{
		{driver.Capability{Major: 8}, 13000, false, false, false},
		{driver.Capability{Major: 8, Minor: 9}, 13000, false, false, false},
		{driver.Capability{Major: 9}, 13000, false, true, true},
		{driver.Capability{Major: 9}, 13000, true, false, false},
		{driver.Capability{Major: 9}, 12030, false, true, true},
		{driver.Capability{Major: 9}, 12020, false, true, false},
		{driver.Capability{Major: 10}, 13000, false, false, false},
	} {
		b, f := openFake(t, drivertest.Options{Version: c.version, Devices: []drivertest.Device{{Name: "GPU", Memory: 1 << 30, Capability: c.capability}}}, Options{Eager: true, Base: c.base})
		p := decoder(t, tensor.F16)
		e := compiled(t, b, p, limitsFor(p, 8, 2))
		loaded := len(f.Launches())
		if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
			t.Fatal(err)
		}
		clusters := false
		for _, l := range f.Launches()[loaded:] {
			clusters = clusters || l.Cluster != driver.Dim3{}
			if l.Programmatic != c.early {
				t.Errorf("capability %v, CUDA %v: %s begins before the kernel before it ends: %v", c.capability, c.version, l.Kernel, l.Programmatic)
			}
		}
		if clusters != c.clusters {
			t.Errorf("capability %v: clusters: %v", c.capability, clusters)
		}
	}
}

// Without any device memory, Kernels still lists what would run.
func TestKernelsAreTold(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{Devices: []drivertest.Device{{Name: "GPU", Memory: 1}}}, Options{})
	p := decoder(t, tensor.Q8_0)
	lines := b.Kernels(p, limitsFor(p, 8, 2))
	if want := len(lower.Rules(&plan.Limits{Activations: tensor.F16}).Stages(p)) + 4; len(lines) != want {
		t.Errorf("%d lines, want %d: %s", len(lines), want, strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if what, names, ok := strings.Cut(l, ": "); !ok || what == "" || names == "" {
			t.Errorf("a line that names no kernel: %q", l)
		}
	}
	lim := limitsFor(p, 8, 2)
	lim.Cache = tensor.Q4_K
	if lines := b.Kernels(p, lim); len(lines) != 1 || !strings.Contains(fmt.Sprint(lines), "no Q4_K cache") {
		t.Errorf("a cache that does not exist: %q", lines)
	}
}
