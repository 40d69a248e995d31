package plan_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

func matrix(rows, cols int) *tensor.Tensor {
	return &tensor.Tensor{Name: "w", DType: tensor.F32, Shape: []int{rows, cols}, Data: make([]byte, 4*rows*cols)}
}

// Two values share a buffer only if one is dead before the other is written, and a node never
// overwrites its inputs.
func TestScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := plan.Build(func(b *plan.Builder) {
			values := []plan.Value{b.Embed(matrix(3, 4))}
			pick := func(what string) plan.Value { return rapid.SampledFrom(values).Draw(t, what) }
			for range rapid.IntRange(0, 20).Draw(t, "nodes") {
				x := pick("x")
				if y := pick("y"); rapid.Bool().Draw(t, "add") && b.Cols(x) == b.Cols(y) {
					values = append(values, b.Add(x, y))
				} else {
					values = append(values, b.Linear(x, matrix(rapid.IntRange(1, 9).Draw(t, "cols"), b.Cols(x)), nil))
				}
			}
			h := b.Pick(pick("residual"))
			b.Output(h, b.Linear(h, matrix(3, b.Cols(h)), nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		s := plan.PlanScratch(p, p.Stages())
		owner := map[int]plan.Value{}
		for _, n := range p.Nodes {
			for _, v := range n.In {
				if owner[s.Buffer[v]] != v {
					t.Fatalf("%%%d was overwritten by %%%d before %%%d read it:\n%v", v, owner[s.Buffer[v]], n.Out, p)
				}
				if s.Buffer[v] == s.Buffer[n.Out] {
					t.Fatalf("%%%d is written over its input %%%d:\n%v", n.Out, v, p)
				}
			}
			owner[s.Buffer[n.Out]] = n.Out
			shape := p.Shapes[n.Out]
			if s.Widths[s.Buffer[n.Out]] < int(shape[1]) || s.Dims[s.Buffer[n.Out]] != shape[0] {
				t.Fatalf("%%%d does not fit its buffer", n.Out)
			}
		}
		for _, v := range []plan.Value{p.Residual, p.Hidden, p.Logits} {
			if owner[s.Buffer[v]] != v {
				t.Fatalf("%%%d is not there at the end:\n%v", v, p)
			}
		}
	})
}

// A chain of any length needs only as many buffers as there are live values.
func TestScratchReuses(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(matrix(3, 8))
		for range 50 {
			x = b.Add(x, b.Linear(x, matrix(8, 8), nil))
		}
		h := b.Pick(x)
		b.Output(h, h)
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.PlanScratch(p, p.Stages()); len(s.Widths) != 4 {
		t.Errorf("%d buffers, want three of tokens and one of rows", len(s.Widths))
	}
	lim := plan.Limits{Tokens: 10, Rows: 2, Seqs: 1}
	if got := plan.PlanScratch(p, p.Stages()).Bytes(&lim, func(w int) int { return w + 1 }); got != 3*10*9*4+2*9*4 {
		t.Errorf("%d bytes", got)
	}
}

func TestBuilderRefuses(t *testing.T) {
	state := plan.State{Name: "kv", KVHeads: 1, HeadDim: 4, ValueDim: 4}
	attr := plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 4, Scale: 1}
	sunk := func(b *plan.Builder, x plan.Value, sinks *tensor.Tensor) {
		k := b.Linear(x, matrix(4, 8), nil)
		b.Attention(x, k, k, sinks, b.State(state), attr)
	}
	capped := func(b *plan.Builder, x plan.Value, limit float64) {
		a, k := attr, b.Linear(x, matrix(4, 8), nil)
		a.Softcap = limit
		b.Attention(x, k, k, nil, b.State(state), a)
	}
	ropeOf := func(change func(*plan.RopeAttr)) func(b *plan.Builder, x plan.Value) {
		return func(b *plan.Builder, x plan.Value) {
			a := plan.RopeAttr{HeadDim: 4, Dims: 4, Freqs: []float64{1, 0.1}, Scale: 1}
			change(&a)
			b.Rope(x, a)
		}
	}
	for name, f := range map[string]func(b *plan.Builder, x plan.Value){
		"inputs that do not fit":      func(b *plan.Builder, x plan.Value) { b.Linear(x, matrix(3, 7), nil) },
		"a bias that does not fit":    func(b *plan.Builder, x plan.Value) { b.Linear(x, matrix(3, 8), matrix(1, 3)) },
		"a weight of integers":        func(b *plan.Builder, x plan.Value) { w := matrix(3, 8); w.DType = tensor.I32; b.Linear(x, w, nil) },
		"a weight cut short":          func(b *plan.Builder, x plan.Value) { w := matrix(3, 8); w.Data = w.Data[1:]; b.Linear(x, w, nil) },
		"a norm that does not divide": func(b *plan.Builder, x plan.Value) { w := matrix(1, 3); w.Shape = []int{3}; b.RMSNorm(x, w, 1) },
		"a norm that is a matrix":     func(b *plan.Builder, x plan.Value) { b.RMSNorm(x, matrix(2, 4), 1) },
		"shapes to add":               func(b *plan.Builder, x plan.Value) { b.Add(x, b.Linear(x, matrix(3, 8), nil)) },
		"two residuals":               func(b *plan.Builder, x plan.Value) { b.Pick(x); b.Pick(x) },
		"two vocabularies":            func(b *plan.Builder, _ plan.Value) { b.Embed(matrix(4, 8)) },
		"heads that cannot share": func(b *plan.Builder, x plan.Value) {
			a := attr
			a.Heads, a.KVHeads = 2, 3
			b.Attention(x, x, x, nil, b.State(state), a)
		},
		"attention of other width": func(b *plan.Builder, x plan.Value) { b.Attention(x, x, x, nil, b.State(state), attr) },
		"a state of other width": func(b *plan.Builder, x plan.Value) {
			k := b.Linear(x, matrix(4, 8), nil)
			s := state
			s.HeadDim = 5
			b.Attention(x, k, k, nil, b.State(s), attr)
		},
		"a state of other window": func(b *plan.Builder, x plan.Value) {
			k := b.Linear(x, matrix(4, 8), nil)
			s := state
			s.Window = 5
			b.Attention(x, k, k, nil, b.State(s), attr)
		},
		"attention to a state that nothing stores": func(b *plan.Builder, x plan.Value) { b.AttentionTo(x, nil, b.State(state), attr) },
		"values of other width": func(b *plan.Builder, x plan.Value) {
			k := b.Linear(x, matrix(4, 8), nil)
			s, a := state, attr
			s.ValueDim, a.ValueDim = 8, 8
			b.Attention(x, k, k, nil, b.State(s), a)
		},
		"a state of other values": func(b *plan.Builder, x plan.Value) {
			k, a := b.Linear(x, matrix(4, 8), nil), attr
			a.ValueDim = 8
			b.Attention(x, k, x, nil, b.State(state), a)
		},
		"a state of other chunks": func(b *plan.Builder, x plan.Value) {
			k, a := b.Linear(x, matrix(4, 8), nil), attr
			a.Chunk = 8
			b.Attention(x, k, k, nil, b.State(state), a)
		},
		"a part past the row":        func(b *plan.Builder, _ plan.Value) { b.EmbedPart(matrix(3, 8), 4, 5) },
		"a part of nothing":          func(b *plan.Builder, _ plan.Value) { b.EmbedPart(matrix(3, 8), 4, 0) },
		"products of other width":    func(b *plan.Builder, x plan.Value) { b.Mul(x, b.Linear(x, matrix(4, 8), nil)) },
		"factors of other length":    func(b *plan.Builder, x plan.Value) { b.MulBy(x, row(7)) },
		"too few columns to mix by":  func(b *plan.Builder, x plan.Value) { b.Mix(x, 7, x, x) },
		"values of two widths mixed": func(b *plan.Builder, x plan.Value) { b.Mix(x, 0, x, b.Linear(x, matrix(4, 8), nil)) },
		"a size of other width":      func(b *plan.Builder, x plan.Value) { b.Rescale(b.Linear(x, matrix(4, 8), nil), x, 1e-5) },
		"a size above nothing":       func(b *plan.Builder, x plan.Value) { b.Rescale(x, x, 0) },
		"a threshold of no number":   func(b *plan.Builder, x plan.Value) { b.Sparsify(x, math.Inf(-1)) },
		"positions in steps of 0":    func(b *plan.Builder, x plan.Value) { b.Temper(x, plan.TemperAttr{By: 1}) },
		"a cap below nothing":        func(b *plan.Builder, x plan.Value) { capped(b, x, -1) },
		"a cap of no number":         func(b *plan.Builder, x plan.Value) { capped(b, x, math.NaN()) },
		"a cap of no end":            func(b *plan.Builder, x plan.Value) { capped(b, x, math.Inf(1)) },
		"sinks of other length":      func(b *plan.Builder, x plan.Value) { sunk(b, x, row(3)) },
		"sinks in a matrix":          func(b *plan.Builder, x plan.Value) { sunk(b, x, matrix(1, 2)) },
		"sinks of integers":          func(b *plan.Builder, x plan.Value) { w := row(2); w.DType = tensor.I32; sunk(b, x, w) },
		"odd rotation":               ropeOf(func(a *plan.RopeAttr) { a.Dims = 3 }),
		"rotation past the head":     ropeOf(func(a *plan.RopeAttr) { a.Dims = 6 }),
		"missing frequencies":        ropeOf(func(a *plan.RopeAttr) { a.Freqs = a.Freqs[:1] }),
		"heads that do not fit":      ropeOf(func(a *plan.RopeAttr) { a.HeadDim = 5 }),
		"dynamic from nowhere":       ropeOf(func(a *plan.RopeAttr) { a.Dynamic = &plan.DynamicNTK{Base: 2, Factor: 2} }),
		"output per token":           func(b *plan.Builder, x plan.Value) { b.Output(x, x) },
		"no output":                  func(*plan.Builder, plan.Value) {},
	} {
		if _, err := plan.Build(func(b *plan.Builder) { f(b, b.Embed(matrix(3, 8))) }); err == nil {
			t.Errorf("%s: built", name)
		}
	}
}

func TestAttentionPrints(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(matrix(3, 8))
		k := b.Linear(x, matrix(4, 8), nil)
		st := b.State(plan.State{Name: "kv", KVHeads: 1, HeadDim: 4, ValueDim: 4, Window: 9})
		a := plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 4, Scale: 0.5, Window: 9}
		x = b.Attention(x, k, k, nil, st, a)
		a.Softcap = 50
		x = b.Pick(b.Attention(x, k, k, row(2), st, a))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `@0 kv kv heads 1 dim 4 window 9 group 0
%0 [T 8] = embed w:F32
%1 [T 4] = linear %0 w:F32
%2 [T 8] = attention %0 %1 %1 {heads 2/1, dim 4, scale 0.5, window 9} @0
%3 [T 8] = attention %2 %1 %1 w:F32 {heads 2/1, dim 4, scale 0.5, softcap 50, window 9} @0
%4 [R 8] = pick %3
hidden %4, logits %4
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestGroups(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		for i, w := range []int{0, 5, 0, 5, 7} {
			b.State(plan.State{Name: "kv", KVHeads: 2 + i, HeadDim: 4, ValueDim: 4, Window: w})
		}
		x := b.Pick(b.Embed(matrix(3, 8)))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []plan.Group{{Window: 0}, {Window: 5}, {Window: 7}}; !slices.Equal(p.Groups, want) {
		t.Errorf("groups %v, want %v", p.Groups, want)
	}
	if got := []int{p.Width(0), p.Width(1), p.Width(2)}; !slices.Equal(got, []int{2 * 4 * (2 + 4), 2 * 4 * (3 + 5), 2 * 4 * 6}) {
		t.Errorf("widths %v", got)
	}
	l := plan.Limits{PageTokens: 16, Pages: []int{3, 2, 1}, Cache: tensor.F16}
	if n, err := l.StateBytes(p); err != nil || n != 2*16*(48*3+64*2+48) {
		t.Errorf("%d bytes, %v", n, err)
	}
	l.Pages[0] = 1 << 60
	if _, err := l.StateBytes(p); err == nil {
		t.Error("pools larger than the address space")
	}
	for _, c := range [][3]int{{0, 9, 0}, {5, 3, 0}, {5, 4, 0}, {5, 5, 1}, {1, 9, 9}} {
		if got := (plan.Group{Window: c[0]}).FirstVisible(c[1]); got != c[2] {
			t.Errorf("a window of %d at %d begins at %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
