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
	table, square := weight("table", 10, 32), weight("square", 32, 32)
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
			a.Route.Used, a.Route.Scale = 1, 1
			a.Gate, a.Up, a.Down = []*tensor.Tensor{square}, []*tensor.Tensor{square}, []*tensor.Tensor{square}
			return b.Experts(x, b.Linear(x, weight("router", 1, 32), nil), nil, a)
		}
	}
	for says, op := range map[string]func(*plan.Builder, plan.Value) plan.Value{
		"no kernel for values of 64 elements beside keys of 32":            attend(plan.AttentionAttr{HeadDim: 32, ValueDim: 64}, false),
		"no kernel for attention in chunks of 7 tokens":                    attend(plan.AttentionAttr{HeadDim: 32, Chunk: 7}, false),
		"no kernel for attention to the keys and values of another layer":  attend(plan.AttentionAttr{HeadDim: 32}, true),
		"no kernel for weights of experts that multiply their inputs":      mixture(plan.ExpertsAttr{Route: plan.RouteAttr{Before: true}}),
		"no kernel for experts with scales of their own":                   mixture(plan.ExpertsAttr{Scales: weight("scales", 1)}),
		"embed table: no kernel for a part of a table's rows":              func(b *plan.Builder, _ plan.Value) plan.Value { return b.EmbedPart(table, 0, 16) },
		"mul: there is no kernel for this operation":                       func(b *plan.Builder, x plan.Value) plan.Value { return b.Mul(x, x) },
		"mix: there is no kernel for this operation":                       func(b *plan.Builder, x plan.Value) plan.Value { return b.Mix(x, 0, x) },
		"temper: there is no kernel for this operation":                    func(b *plan.Builder, x plan.Value) plan.Value { return b.Temper(x, plan.TemperAttr{Every: 1}) },
		"rescale: there is no kernel for this operation; use --device cpu": func(b *plan.Builder, x plan.Value) plan.Value { return b.Rescale(x, x, 1) },
		"select: there is no kernel for this operation": func(b *plan.Builder, x plan.Value) plan.Value {
			keys := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: 32})
			return b.Linear(b.Select(x, x, b.Linear(x, weight("w", 1, 32), nil), keys, plan.SelectAttr{Heads: 1, HeadDim: 32, Top: 3}), weight("o", 32, 3), nil)
		},
		"compress bias: there is no kernel for this operation": func(b *plan.Builder, x plan.Value) plan.Value {
			a := plan.CompressAttr{Rate: 2}
			return b.Compress(x, x, weight("bias", 2, 32), b.State(a.State(32)), a)
		},
		"connect scale: there is no kernel for this operation": func(b *plan.Builder, x plan.Value) plan.Value {
			a := plan.ConnectAttr{Streams: 2, Iterations: 1}
			return b.Linear(b.Connect(b.Linear(x, weight("w", 8, 32), nil), weight("scale", 3), weight("base", 8), a), weight("o", 32, 8), nil)
		},
		"no kernel for a rotation by positions shifted by 3": func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Rope(x, plan.RopeAttr{HeadDim: 32, Dims: 2, Freqs: []float64{1}, Scale: 1, Shift: 3})
		},
		"no kernel for experts chosen by the root of softplus": mixture(plan.ExpertsAttr{Route: plan.RouteAttr{Score: plan.SqrtSoftplus}}),
		"no kernel for experts that a table has": func(b *plan.Builder, x plan.Value) plan.Value {
			a := plan.ExpertsAttr{Route: plan.RouteAttr{Used: 1, Scale: 1}, Gate: []*tensor.Tensor{square}, Up: []*tensor.Tensor{square}, Down: []*tensor.Tensor{square}}
			return b.GivenExperts(x, b.Linear(x, weight("router", 1, 32), nil), b.Linear(x, weight("given", 1, 32), nil), a)
		},
		"experts: no kernel for limits of activations":                      mixture(plan.ExpertsAttr{GLU: plan.GLUAttr{Limit: 1, Late: true}}),
		"glu: no kernel for limits of activations":                          func(b *plan.Builder, x plan.Value) plan.Value { return b.GLU(x, x, plan.GLUAttr{Limit: 1, Late: true}) },
		"sparsify: there is no kernel for this operation; use --device cpu": func(b *plan.Builder, x plan.Value) plan.Value { return b.Sparsify(x, 1) },
	} {
		p, err := plan.Build(func(b *plan.Builder) {
			y := b.Pick(op(b, b.Embed(table)))
			b.Output(y, y)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := lower.Check(p, &plan.Limits{}); err == nil || !strings.Contains(err.Error(), says) || !strings.HasSuffix(err.Error(), "use --device cpu") {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}
