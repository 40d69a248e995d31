package cuda

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden stages")

// synthetic returns a small model of random weights, loaded from its file.
func synthetic(t *testing.T, s *synth.Shape, mix string) *plan.Program {
	t.Helper()
	file, err := modelfile.Open(synthtest.File(t, s, mix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	model, err := arch.Build(file)
	if err != nil {
		t.Fatal(err)
	}
	return model.Program
}

// list returns the stages of a program, one per line: operations, inputs and outputs.
func list(p *plan.Program, lim *plan.Limits) string {
	var b strings.Builder
	values := func(all []plan.Value) {
		for _, v := range all {
			fmt.Fprintf(&b, " %%%d", v)
		}
	}
	stages := lower.Rules(lim).Stages(p)
	for i := range stages {
		s := &stages[i]
		io := s.IO()
		fmt.Fprintf(&b, "%s\n\tof", s)
		values(io.In)
		b.WriteString(" makes")
		values(io.Out)
		b.WriteByte('\n')
	}
	return b.String()
}

// The stages of whole models are golden texts.
func TestStages(t *testing.T) {
	small := synth.Shape{
		Name: "small", Architecture: "llama", Layers: 2, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 512, Context: 128,
		RopeBase: 1e4, Eps: 1e-5, Tied: true,
	}
	qwen := small
	qwen.Architecture, qwen.QKNorm, qwen.Tied = "qwen3", true, false
	programs := map[string]*plan.Program{"model": plantest.Model(t, nil), "llama": synthetic(t, &small, "Q4_K_M"), "qwen3": synthetic(t, &qwen, "Q8_0")}
	for name, p := range programs {
		golden := filepath.Join("testdata", name+".stages")
		got := p.String() + "\n" + list(p, &plan.Limits{Activations: tensor.F16})
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("the stages differ from %s; if they should, run the test with -update\n%s", golden, d)
		}
	}
}

// What is fused, and what must not be because another stage reads the value or an input is not
// ready.
func TestJoin(t *testing.T) {
	const width = 64
	rng := newRand()
	matrix := func(d tensor.DType, rows int) *tensor.Tensor { return plantest.Weight(rng, "w", d, 1, rows, width) }
	w := func() *tensor.Tensor { return matrix(tensor.Q8_0, width) }
	vector := func(n int) *tensor.Tensor { return plantest.Weight(rng, "v", tensor.F32, 1, n) }
	// end completes a program whose residual stream is x.
	end := func(b *plan.Builder, x plan.Value) {
		h := b.RMSNorm(b.Pick(x), vector(width), 1e-5)
		b.Output(h, b.Linear(h, matrix(tensor.F16, 40), nil))
	}
	turn := func(b *plan.Builder, x plan.Value, headDim int) plan.Value {
		return b.Rope(x, plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: make([]float64, headDim/2), Scale: 1})
	}
	attend := func(b *plan.Builder, q, k, v plan.Value) plan.Value {
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 2, HeadDim: 32, ValueDim: 32})
		return b.Attention(q, k, v, nil, s, plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 32, Scale: 1})
	}
	convolve := func(b *plan.Builder, x plan.Value) plan.Value {
		const taps = 4
		s := b.State(plan.State{Name: fmt.Sprint("tail", x), Kind: plan.PerSequence, Size: (taps - 1) * width})
		return b.Conv(x, plantest.Weight(rng, "taps", tensor.F32, 1, width, taps), nil, s)
	}
	// latent returns latent attention to rows of so many columns, and the normalized rows. Other
	// columns of queries and keys are rotated.
	latent := func(b *plan.Builder, x plan.Value, rank int) (y, rows plan.Value) {
		const heads, plain, turned = 2, 32, 32
		q, c, r := b.Linear(x, matrix(tensor.Q8_0, heads*(plain+turned)), nil), b.Linear(x, matrix(tensor.Q8_0, rank), nil), b.Linear(x, matrix(tensor.Q8_0, turned), nil)
		rows, r = b.RMSNorm(c, vector(rank), 1e-5), turn(b, r, turned)
		q = b.Rope(q, plan.RopeAttr{HeadDim: plain + turned, First: plain, Dims: turned, Freqs: make([]float64, turned/2), Scale: 1})
		var keys []*tensor.Tensor
		for range heads {
			keys = append(keys, plantest.Weight(rng, "keys", tensor.Q8_0, 1, rank, plain))
		}
		s := b.State(plan.State{Name: "rows", Kind: plan.PerToken, KVHeads: 1, HeadDim: rank + turned})
		y = b.LatentAttention(b.HeadLinear(q, keys), rows, r, nil, s, plan.AttentionAttr{Heads: heads, KVHeads: 1, HeadDim: rank + turned, ValueDim: rank, Scale: 1})
		return b.Linear(y, plantest.Weight(rng, "out", tensor.Q8_0, 1, width, heads*rank), nil), rows
	}
	// one returns a mixture of a single expert.
	one := func(w func() *tensor.Tensor) plan.ExpertsAttr {
		list := func() []*tensor.Tensor { return []*tensor.Tensor{w()} }
		return plan.ExpertsAttr{Route: plan.RouteAttr{Used: 1, Scale: 1}, Gate: list(), Up: list(), Down: list()}
	}
	for _, test := range []struct {
		name        string
		activations tensor.DType
		body        func(b *plan.Builder, x plan.Value) plan.Value // x is value 0, the embedding
		want        []string                                       // stages, without the first and the last two
	}{
		{
			name: "products of one input",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y, z := b.Linear(x, w(), nil), b.Linear(x, w(), vector(width))
				return b.GLU(b.Add(y, z), b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 linear, %2 linear, %4 linear", "%3 add, %5 glu"},
		},
		{
			name: "products of several formats",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y, z := b.Linear(x, w(), nil), b.Linear(x, matrix(tensor.F16, width), nil)
				u, v := b.Linear(x, w(), nil), b.Linear(x, matrix(tensor.F16, width), nil)
				return b.Add(b.Add(y, z), b.Add(u, v))
			},
			want: []string{"%1 linear, %3 linear", "%2 linear, %4 linear", "%5 add", "%6 add, %7 add"},
		},
		{
			name: "products of several inputs",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.RMSNorm(x, vector(width), 1e-5)
				return b.GLU(b.Linear(x, w(), nil), b.Linear(y, w(), nil), plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 rmsnorm", "%2 linear", "%3 linear", "%4 glu"},
		},
		{
			name: "more products than a launch takes",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Linear(x, w(), nil)
				for range lower.MaxProducts {
					y = b.Add(b.Linear(x, w(), nil), y)
				}
				return y
			},
			want: []string{"%1 linear, %2 linear, %4 linear, %6 linear, %8 linear, %10 linear", "%3 add, %5 add, %7 add, %9 add", "%11 add", "%12 linear, %13 add"},
		},
		{
			name: "a gated unit", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				return b.GLU(b.Linear(x, w(), nil), b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 linear, %2 linear, %3 glu"},
		},
		{
			name: "a gated unit of float32 activations",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				return b.GLU(b.Linear(x, w(), nil), b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 linear, %2 linear", "%3 glu"},
		},
		{
			name: "a gated unit whose gate comes last", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				up := b.Linear(x, w(), nil)
				return b.GLU(b.Linear(x, w(), nil), up, plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 linear, %2 linear", "%3 glu"},
		},
		{
			name: "a gate that is read twice", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				g := b.Linear(x, w(), nil)
				return b.Add(b.GLU(g, b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.SiLU}), g)
			},
			want: []string{"%1 linear, %2 linear", "%3 glu, %4 add"},
		},
		{
			name: "a gated value that is read twice", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				g, u := b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				return b.Add(u, b.GLU(g, u, plan.GLUAttr{Act: plan.SiLU}))
			},
			want: []string{"%1 linear, %2 linear", "%3 glu, %4 add"},
		},
		{
			name: "a third product beside a gated unit", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.GLU(b.Linear(x, w(), nil), b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.SiLU})
				return b.Add(y, b.Linear(x, w(), nil))
			},
			want: []string{"%1 linear, %2 linear, %4 linear", "%3 glu, %5 add"},
		},
		{
			name: "an addition",
			body: func(b *plan.Builder, x plan.Value) plan.Value { return b.Add(x, b.Linear(x, w(), nil)) },
			want: []string{"%1 linear, %2 add"},
		},
		{
			name: "an addition the other way around",
			body: func(b *plan.Builder, x plan.Value) plan.Value { return b.Add(b.Linear(x, w(), nil), x) },
			want: []string{"%1 linear, %2 add"},
		},
		{
			name: "an addition to itself",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Linear(x, w(), nil)
				return b.Add(y, y)
			},
			want: []string{"%1 linear", "%2 add"},
		},
		{
			name: "an addition of what comes later",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Linear(x, w(), nil)
				return b.Add(y, b.RMSNorm(x, vector(width), 1e-5))
			},
			want: []string{"%1 linear", "%2 rmsnorm", "%3 add"},
		},
		{
			name: "an addition of two products",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.RMSNorm(x, vector(width), 1e-5)
				return b.Add(b.Linear(x, w(), nil), b.Linear(y, w(), nil))
			},
			want: []string{"%1 rmsnorm", "%2 linear", "%3 linear, %4 add"},
		},
		{
			name: "a product that is added and read",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Linear(x, w(), nil)
				return b.GLU(b.Add(x, y), y, plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 linear", "%2 add, %3 glu"},
		},
		{
			name: "a scale and an addition",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				return b.Add(x, b.Scale(b.Linear(x, w(), nil), 0.5))
			},
			want: []string{"%1 linear, %2 map, %3 add"},
		},
		{
			name: "a scale alone",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Scale(b.Linear(x, w(), nil), 0.5)
				return b.GLU(y, b.Add(y, x), plan.GLUAttr{Act: plan.SiLU})
			},
			want: []string{"%1 linear, %2 map", "%3 add, %4 glu"},
		},
		{
			name: "a product that is scaled and read",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Linear(x, w(), nil)
				return b.Add(b.Scale(y, 0.5), y)
			},
			want: []string{"%1 linear", "%2 map, %3 add"},
		},
		{
			name: "a softcap",
			body: func(b *plan.Builder, x plan.Value) plan.Value { return b.Softcap(b.Linear(x, w(), nil), 30) },
			want: []string{"%1 linear", "%2 map"},
		},
		{
			name: "an activation", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				return b.Add(x, b.Linear(b.Activate(b.Linear(x, w(), nil), plan.GELU), w(), nil))
			},
			want: []string{"%1 linear, %2 map", "%3 linear, %4 add"},
		},
		{
			name: "an activation of float32 activations",
			body: func(b *plan.Builder, x plan.Value) plan.Value { return b.Activate(b.Linear(x, w(), nil), plan.GELU) },
			want: []string{"%1 linear", "%2 map"},
		},
		{
			name: "a gate of one column", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				return b.GLU(b.Linear(x, matrix(tensor.Q8_0, 1), nil), b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.Sigmoid})
			},
			want: []string{"%1 linear, %2 linear", "%3 glu"},
		},
		{
			name: "experts and an addition", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Experts(x, b.Linear(x, matrix(tensor.F32, 1), nil), nil, one(w))
				return b.Add(x, y)
			},
			want: []string{"%1 linear", "%2 experts, %3 add"},
		},
		{
			name: "experts and what comes later", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Experts(x, b.Linear(x, matrix(tensor.F32, 1), nil), nil, one(w))
				return b.Add(b.Add(y, b.Linear(x, w(), nil)), y)
			},
			want: []string{"%1 linear", "%2 experts", "%3 linear, %4 add", "%5 add"},
		},
		{
			name: "heads that are normalised when they are turned",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q, k, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				return attend(b, b.RMSNorm(turn(b, q, 32), vector(32), 1e-5), b.LayerNorm(k, vector(32), nil, 1e-5), v)
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 rope", "%5 rmsnorm", "%6 layernorm", "%7 attention"},
		},
		{
			name: "layer norms of heads",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q, k, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				return attend(b, turn(b, b.LayerNormHeads(q, vector(width), nil, 32, 1e-5), 32), turn(b, b.LayerNorm(k, vector(32), nil, 1e-5), 32), v)
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 layernorm", "%6 layernorm", "%5 rope, %7 rope, %8 attention"},
		},
		{
			name: "both ways",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q := turn(b, b.RMSNorm(x, vector(32), 1e-5), 32)
				return b.Bidirectional(q, x, x, plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 32, Scale: 1})
			},
			want: []string{"%1 rmsnorm", "%2 rope", "%3 bidirectional"},
		},
		{
			name: "heads",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q, k, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				k = b.RMSNorm(k, vector(32), 1e-5)
				return attend(b, turn(b, q, 32), turn(b, k, 32), v)
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%5 rope, %4 rmsnorm, %6 rope, %7 attention"},
		},
		{
			name: "heads that are not turned",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q, k, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				return attend(b, b.RMSNorm(q, vector(32), 1e-5), k, v)
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 rmsnorm", "%5 attention"},
		},
		{
			name: "norms and ropes of other lengths than heads",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q, k, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				return attend(b, turn(b, b.RMSNorm(q, vector(width), 1e-5), 32), turn(b, k, 16), v)
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 rmsnorm", "%6 rope", "%5 rope, %7 attention"},
		},
		{
			name: "heads that are read twice",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				q, k, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				turned := turn(b, q, 32)
				y := attend(b, turned, turn(b, k, 32), v)
				return b.Add(b.Add(y, turned), k)
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 rope", "%5 rope", "%6 attention", "%7 add, %8 add"},
		},
		{
			name: "an activated convolution",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Conv(x, matrix(tensor.F32, width), nil, b.State(plan.State{Name: "tail", Kind: plan.PerSequence, Size: (width - 1) * width}))
				return b.Add(x, b.Activate(y, plan.SiLU))
			},
			want: []string{"%1 conv, %2 map", "%3 add"},
		},
		{
			name: "a convolution and an addition",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Conv(x, matrix(tensor.F32, width), nil, b.State(plan.State{Name: "tail", Kind: plan.PerSequence, Size: (width - 1) * width}))
				return b.Add(x, y)
			},
			want: []string{"%1 conv", "%2 add"},
		},
		{
			name: "convolutions, of which one reads another",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := convolve(b, x)
				first := b.Activate(y, plan.SiLU)
				second, third := convolve(b, b.Linear(x, w(), nil)), convolve(b, b.Linear(x, w(), nil))
				after := convolve(b, first)
				return b.Add(b.Add(first, second), b.Add(third, after))
			},
			want: []string{"%1 conv, %2 map", "%3 linear, %5 linear", "%4 conv, %6 conv, %7 conv", "%8 add", "%9 add, %10 add"},
		},
		{
			name: "more convolutions than a launch takes",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y, z, u, v := b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil), b.Linear(x, w(), nil)
				y, z, u, v = b.Activate(convolve(b, y), plan.SiLU), convolve(b, z), b.Activate(convolve(b, u), plan.SiLU), convolve(b, v)
				return b.Add(b.Add(y, z), b.Add(u, v))
			},
			want: []string{"%1 linear, %2 linear, %3 linear, %4 linear", "%5 conv, %7 conv, %8 conv, %6 map, %9 map", "%10 conv", "%11 add", "%12 add, %13 add"},
		},
		{
			name: "rows of latent attention",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y, _ := latent(b, x, 160)
				return y
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%6 rope, %7 headlinear", "%4 rmsnorm, %5 rope, %8 attention", "%9 linear"},
		},
		{
			name: "short rows of latent attention",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y, _ := latent(b, x, 128)
				return y
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 rmsnorm", "%6 rope, %7 headlinear", "%5 rope, %8 attention", "%9 linear"},
		},
		{
			name: "rows of latent attention that others read",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y, rows := latent(b, x, 160)
				return b.Add(y, b.Linear(rows, plantest.Weight(rng, "other", tensor.Q8_0, 1, width, 160), nil))
			},
			want: []string{"%1 linear, %2 linear, %3 linear", "%4 rmsnorm", "%6 rope, %7 headlinear", "%5 rope, %8 attention", "%9 linear", "%10 linear, %11 add"},
		},
		{
			name: "a norm that is gated",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				return b.Scale(b.GLU(x, b.RMSNorm(x, vector(width), 1e-5), plan.GLUAttr{Act: plan.SiLU}), 0.5)
			},
			want: []string{"%1 rmsnorm, %2 glu", "%3 map"},
		},
		{
			name: "a norm that gates, and one with a late limit",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.GLU(b.RMSNorm(x, vector(width), 1e-5), x, plan.GLUAttr{Act: plan.SiLU})
				return b.GLU(x, b.LayerNorm(y, vector(width), nil, 1e-5), plan.GLUAttr{Act: plan.SiLU, Limit: 1, Late: true})
			},
			want: []string{"%1 rmsnorm", "%2 glu", "%3 layernorm", "%4 glu"},
		},
		{
			name: "more elementwise operations than a launch takes",
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.Activate(x, plan.GELU)
				for range 5 {
					y = b.Add(b.Scale(y, 0.5), x)
				}
				return y
			},
			want: []string{"%1 map, %2 map, %3 add, %4 map", "%5 add, %6 map, %7 add, %8 map", "%9 add, %10 map, %11 add"},
		},
		{
			name: "a gate of one column and two additions", activations: tensor.F16,
			body: func(b *plan.Builder, x plan.Value) plan.Value {
				y := b.GLU(b.Linear(x, matrix(tensor.Q8_0, 1), nil), b.Linear(x, w(), nil), plan.GLUAttr{Act: plan.Sigmoid})
				return b.Add(x, b.Add(b.RMSNorm(x, vector(width), 1e-5), y))
			},
			want: []string{"%1 linear, %2 linear", "%3 glu", "%4 rmsnorm", "%5 add, %6 add"},
		},
		{
			name: "one value for queries, keys and values",
			body: func(b *plan.Builder, x plan.Value) plan.Value { return attend(b, x, x, x) },
			want: []string{"%1 attention"},
		},
	} {
		p := program(t, func(b *plan.Builder) { end(b, test.body(b, b.Embed(matrix(tensor.F16, 40)))) })
		stages := lower.Rules(&plan.Limits{Activations: test.activations}).Stages(p)
		var got []string
		done := map[*plan.Node]int{}
		for i := range stages {
			s := &stages[i]
			got = append(got, s.String())
			for _, n := range s.All() {
				if n != nil {
					done[n]++
				}
			}
		}
		if d := cmp.Diff(test.want, got[1:len(got)-2]); d != "" {
			t.Errorf("%s: want -, got +\n%s", test.name, d)
		}
		for i := range p.Nodes {
			if n := done[&p.Nodes[i]]; n != 1 {
				t.Errorf("%s: %s is done %d times", test.name, p.Nodes[i].Where(), n)
			}
		}
		written := map[plan.Value]bool{}
		for i := range stages {
			io := stages[i].IO()
			for _, v := range io.In {
				if !written[v] {
					t.Errorf("%s: %s reads %%%d before it is written", test.name, got[i], v)
				}
			}
			for _, v := range io.Out {
				written[v] = true
			}
		}
	}
}

// Rows are picked by their norm, unless another stage reads the norm's input rows.
func TestJoinPick(t *testing.T) {
	rng := newRand()
	w := func(rows int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F16, 1, rows, 32) }
	norm := plantest.Weight(rng, "v", tensor.F32, 1, 32)
	for _, test := range []struct {
		twice, mean bool
		want        []string
	}{
		{false, false, []string{"%0 embed", "%1 pick, %2 rmsnorm", "%3 linear"}},
		{true, false, []string{"%0 embed", "%1 pick", "%2 rmsnorm", "%3 add", "%4 linear"}},
		{false, true, []string{"%0 embed", "%1 pick", "%2 rmsnorm", "%3 linear"}},
	} {
		p := program(t, func(b *plan.Builder) {
			pick := b.Pick
			if test.mean {
				pick = b.PickMean
			}
			x := pick(b.Embed(w(40)))
			h := b.RMSNorm(x, norm, 1e-5)
			if test.twice {
				h = b.Add(h, x)
			}
			b.Output(h, b.Linear(h, w(40), nil))
		})
		var got []string
		stages := lower.Rules(&plan.Limits{}).Stages(p)
		for i := range stages {
			got = append(got, stages[i].String())
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("read twice %v, mean %v: want -, got +\n%s", test.twice, test.mean, d)
		}
	}
}
