package lower_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// TestLackingForms checks that a program is refused by the name of what the kernels lack.
func TestLackingForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	weight := func(name string, shape ...int) *tensor.Tensor {
		return plantest.Weight(rng, name, tensor.F32, 1, shape...)
	}
	table := weight("table", 10, 32)
	for says, op := range map[string]func(*plan.Builder, plan.Value) plan.Value{
		"no kernel for a sum of 9 values, of which 8 is the most": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Mix(x, 0, x, x, x, x, x, x, x, x, x)
		},
		"no kernel for heads of keys of 768 values and values of 768": func(b *plan.Builder, x plan.Value) plan.Value {
			st, y := b.State(plan.State{Name: "kv", KVHeads: 1, HeadDim: 768, ValueDim: 768}), b.Linear(x, weight("q", 768, 32), nil)
			return b.Attention(y, y, y, nil, st, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 768, Scale: 1})
		},
		"no kernel for 500 states of a head, of which 448 is the most": func(b *plan.Builder, x plan.Value) plan.Value {
			one := weight("one", 1)
			a := plan.StateSpaceAttr{Heads: 1, HeadDim: 32, Groups: 1, States: 500, A: one, Skip: one, StepBias: one}
			return b.StateSpace(b.Linear(x, weight("in", a.Width(), 32), nil), b.Linear(x, weight("dt", 1, 32), nil), "h", a)
		},
		"no kernel for 2050 experts, of which 2048 is the most": func(b *plan.Builder, x plan.Value) plan.Value {
			list := []*tensor.Tensor{weight("square", 32, 32)}
			a := plan.ExpertsAttr{Route: plan.RouteAttr{Used: 1, Scale: 1}, Identity: 2049, Gate: list, Up: list, Down: list}
			return b.Experts(x, b.Linear(x, weight("router", 2050, 32), nil), nil, a)
		},
		"no kernel for keys of 768 values, of which 640 is the most": func(b *plan.Builder, x plan.Value) plan.Value {
			keys, y := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: 768}), b.Linear(x, weight("q", 768, 32), nil)
			return b.Select(y, y, b.Linear(x, weight("w", 1, 32), nil), keys, plan.SelectAttr{Heads: 1, HeadDim: 768, Top: 3})
		},
	} {
		if err := lower.Check(programOf(t, table, op), &plan.Limits{}); err == nil || !strings.Contains(err.Error(), says) || !strings.HasSuffix(err.Error(), "use --device cpu") {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

// programOf returns a program of one operation on the rows of a table.
func programOf(t *testing.T, table *tensor.Tensor, op func(*plan.Builder, plan.Value) plan.Value) *plan.Program {
	t.Helper()
	p, err := plan.Build(func(b *plan.Builder) {
		y := b.Pick(op(b, b.Embed(table)))
		b.Output(y, y)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAcceptedForms checks that Check accepts the forms of operations that few models use.
func TestAcceptedForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	weight := func(name string, shape ...int) *tensor.Tensor {
		return plantest.Weight(rng, name, tensor.F32, 1, shape...)
	}
	table := weight("table", 10, 32)
	attend := func(a plan.AttentionAttr, to bool) func(*plan.Builder, plan.Value) plan.Value {
		return func(b *plan.Builder, x plan.Value) plan.Value {
			a.Heads, a.KVHeads, a.Scale = 1, 1, 1
			st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: a.HeadDim, ValueDim: a.Values(), Window: a.Window, Chunk: a.Chunk})
			y := b.Attention(x, x, b.Linear(x, weight("v", a.Values(), 32), nil), nil, st, a)
			if to {
				y = b.AttentionTo(x, nil, st, a)
			}
			return y
		}
	}
	mixture := func(a plan.ExpertsAttr) func(*plan.Builder, plan.Value) plan.Value {
		return func(b *plan.Builder, x plan.Value) plan.Value {
			list := []*tensor.Tensor{weight("square", 32, 32)}
			a.Route.Used, a.Route.Scale, a.Gate, a.Up, a.Down = 1, 1, list, list, list
			return b.Experts(x, b.Linear(x, weight("router", 1+a.Identity, 32), nil), nil, a)
		}
	}
	for name, op := range map[string]func(*plan.Builder, plan.Value) plan.Value{
		"experts before":      mixture(plan.ExpertsAttr{Route: plan.RouteAttr{Before: true}}),
		"experts with scales": mixture(plan.ExpertsAttr{Scales: weight("scales", 1)}),
		"identity experts":    mixture(plan.ExpertsAttr{Identity: 1}),
		"sparse mixer":        mixture(plan.ExpertsAttr{Route: plan.RouteAttr{Score: plan.SparseMixer}}),
		"root of softplus":    mixture(plan.ExpertsAttr{Route: plan.RouteAttr{Score: plan.SqrtSoftplus}}),
		"late experts":        mixture(plan.ExpertsAttr{GLU: plan.GLUAttr{Limit: 1, Late: true}}),
		"given experts": func(b *plan.Builder, x plan.Value) plan.Value {
			list := []*tensor.Tensor{weight("square", 32, 32)}
			a := plan.ExpertsAttr{Route: plan.RouteAttr{Used: 1, Scale: 1}, Gate: list, Up: list, Down: list}
			return b.GivenExperts(x, b.Linear(x, weight("router", 1, 32), nil), b.Linear(x, weight("given", 1, 32), nil), a)
		},
		"late gate": func(b *plan.Builder, x plan.Value) plan.Value { return b.GLU(x, x, plan.GLUAttr{Limit: 1, Late: true}) },
		"retention": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Retention(x, weight("decays", 1), "h", plan.StateSpaceAttr{Heads: 1, HeadDim: 16, Groups: 1, States: 8})
		},
		"lru": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.LRU(x, x, x, b.State(plan.State{Name: "h", Kind: plan.PerSequence, Size: 32}), plan.LRUAttr{Rate: weight("rate", 32), InputBias: weight("a", 32), DecayBias: weight("b", 32)})
		},
		"sparse attention": func(b *plan.Builder, x plan.Value) plan.Value {
			keys := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: 32})
			chosen := b.Select(x, x, b.Linear(x, weight("w", 1, 32), nil), keys, plan.SelectAttr{Heads: 1, HeadDim: 32, Top: 3})
			c, r := b.Linear(x, weight("c", 24, 32), nil), b.Linear(x, weight("r", 8, 32), nil)
			return b.SparseAttention(x, c, r, chosen, nil, b.State(plan.State{Name: "kv", KVHeads: 1, HeadDim: 32}), plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 32, ValueDim: 24, Scale: 1, Top: 3})
		},
		"compressed attention": func(b *plan.Builder, x plan.Value) plan.Value {
			a, far := plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 32, Scale: 1, Window: 8, Rate: 4}, plan.CompressAttr{Rate: 4}
			a.Compressed = b.State(plan.State{Name: "far", KVHeads: 1, HeadDim: 32, Every: 4})
			near := b.State(plan.State{Name: "near", KVHeads: 1, HeadDim: 32, Window: 8})
			return b.CompressedAttention(x, x, b.Compress(x, x, weight("bias", 4, 32), b.State(far.State(32)), far), nil, near, a)
		},
		"attention to keys that are whole values": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.SharedAttention(x, x, nil, b.State(plan.State{Name: "kv", KVHeads: 1, HeadDim: 32}), plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 32, Scale: 1})
		},
		"connect": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Connect(b.Linear(x, weight("w", 8, 32), nil), weight("scale", 3), weight("base", 8), plan.ConnectAttr{Streams: 2, Iterations: 1})
		},
		"shifted rope": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Rope(x, plan.RopeAttr{HeadDim: 32, Dims: 2, Freqs: []float64{1}, Scale: 1, Shift: 3})
		},
		"headlinear": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.HeadLinear(x, []*tensor.Tensor{weight("head", 8, 32)})
		},
		"scan": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Scan(x, x, x, x, weight("a", 32, 32), weight("skip", 32), b.State(plan.State{Name: "h", Kind: plan.PerSequence, Size: 32 * 32}))
		},
		"statespace": func(b *plan.Builder, x plan.Value) plan.Value {
			one := weight("one", 1)
			a := plan.StateSpaceAttr{Heads: 1, HeadDim: 16, Groups: 1, States: 8, A: one, Skip: one, StepBias: one}
			return b.StateSpace(x, b.Linear(x, weight("dt", 1, 32), nil), "h", a)
		},
		"delta": func(b *plan.Builder, x plan.Value) plan.Value {
			a, one := plan.DeltaAttr{KeyHeads: 1, Heads: 1, KeyDim: 32, ValueDim: 32, Beta: 1}, weight("one", 1)
			matrices, rows := a.States()
			state, y := b.State(matrices), b.Linear(x, weight("b", 1, 32), nil)
			a.Rows = b.State(rows)
			return b.Delta(x, x, x, y, y, one, one, state, a)
		},
		"embed table":                func(b *plan.Builder, _ plan.Value) plan.Value { return b.EmbedPart(table, 0, 16) },
		"concat":                     func(b *plan.Builder, x plan.Value) plan.Value { return b.Concat(x, x) },
		"mul":                        func(b *plan.Builder, x plan.Value) plan.Value { return b.Mul(x, x) },
		"mix":                        func(b *plan.Builder, x plan.Value) plan.Value { return b.Mix(x, 0, x) },
		"temper":                     func(b *plan.Builder, x plan.Value) plan.Value { return b.Temper(x, plan.TemperAttr{Every: 1}) },
		"rescale":                    func(b *plan.Builder, x plan.Value) plan.Value { return b.Rescale(x, x, 1) },
		"attention":                  attend(plan.AttentionAttr{HeadDim: 32, ValueDim: 64}, false),
		"attention in chunks":        attend(plan.AttentionAttr{HeadDim: 32, Chunk: 7}, false),
		"attention to another layer": attend(plan.AttentionAttr{HeadDim: 32}, true),
		"latent attention": func(b *plan.Builder, x plan.Value) plan.Value {
			st := b.State(plan.State{Name: "kv", KVHeads: 1, HeadDim: 32})
			c, r := b.Linear(x, weight("c", 24, 32), nil), b.Linear(x, weight("r", 8, 32), nil)
			return b.LatentAttention(x, c, r, nil, st, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 32, ValueDim: 24, Scale: 1})
		},
		"rope": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Rope(x, plan.RopeAttr{HeadDim: 32, First: 16, Dims: 16, Freqs: make([]float64, 8), Scale: 1})
		},
		"sparsify": func(b *plan.Builder, x plan.Value) plan.Value { return b.Sparsify(x, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := programOf(t, table, op)
			if err := lower.Check(p, &plan.Limits{}); err != nil {
				t.Error(err)
			}
		})
	}
}
