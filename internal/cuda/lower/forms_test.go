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
		"no kernel for values of 64 elements beside keys of 32":           attend(plan.AttentionAttr{HeadDim: 32, ValueDim: 64}, false),
		"no kernel for attention in chunks of 7 tokens":                   attend(plan.AttentionAttr{HeadDim: 32, Chunk: 7}, false),
		"no kernel for attention to the keys and values of another layer": attend(plan.AttentionAttr{HeadDim: 32}, true),
		"no kernel for weights of experts that multiply their inputs":     mixture(plan.ExpertsAttr{Route: plan.RouteAttr{Before: true}}),
		"no kernel for experts with scales of their own":                  mixture(plan.ExpertsAttr{Scales: weight("scales", 1)}),
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

// TestUntriedForms checks that what no GPU has run is refused unless the environment admits it.
func TestUntriedForms(t *testing.T) {
	table := plantest.Weight(rand.New(rand.NewPCG(1, 2)), "table", tensor.F32, 1, 10, 32)
	for name, op := range map[string]func(*plan.Builder, plan.Value) plan.Value{
		"embed table": func(b *plan.Builder, _ plan.Value) plan.Value { return b.EmbedPart(table, 0, 16) },
		"concat":      func(b *plan.Builder, x plan.Value) plan.Value { return b.Concat(x, x) },
		"mul":         func(b *plan.Builder, x plan.Value) plan.Value { return b.Mul(x, x) },
		"mix":         func(b *plan.Builder, x plan.Value) plan.Value { return b.Mix(x, 0, x) },
		"temper":      func(b *plan.Builder, x plan.Value) plan.Value { return b.Temper(x, plan.TemperAttr{Every: 1}) },
		"rescale":     func(b *plan.Builder, x plan.Value) plan.Value { return b.Rescale(x, x, 1) },
		"sparsify":    func(b *plan.Builder, x plan.Value) plan.Value { return b.Sparsify(x, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := programOf(t, table, op)
			says := name + ": no kernel for this operation has run on a GPU yet; use --device cpu"
			if err := lower.Check(p, &plan.Limits{}); err == nil || !strings.HasSuffix(err.Error(), says) {
				t.Errorf("error %v, want %q", err, says)
			}
			t.Setenv("REALIZAR_UNTRIED_KERNELS", "1")
			if err := lower.Check(p, &plan.Limits{}); err != nil {
				t.Error(err)
			}
		})
	}
}
