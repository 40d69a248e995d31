package plan_test

import (
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

func row(n int) *tensor.Tensor {
	w := matrix(1, n)
	w.Shape = []int{n}
	return w
}

func TestNormsAndGLUs(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(matrix(3, 8))
		x = b.LayerNorm(x, row(8), row(8), 1e-5)
		x = b.LayerNorm(x, row(4), nil, 1e-6)
		x = b.RMSNorm(x, row(2), 1e-6)
		for _, act := range plan.Activations() {
			x = b.GLU(x, x, plan.GLUAttr{Act: act})
		}
		x = b.Pick(x)
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `%0 [T 8] = embed w:F32
%1 [T 8] = layernorm %0 w:F32 w:F32 {group 8, eps 1e-05}
%2 [T 8] = layernorm %1 w:F32 {group 4, eps 1e-06}
%3 [T 8] = rmsnorm %2 w:F32 {group 2, eps 1e-06}
%4 [T 8] = glu %3 %3 {silu}
%5 [T 8] = glu %4 %4 {gelu}
%6 [T 8] = glu %5 %5 {gelu_tanh}
%7 [T 8] = glu %6 %6 {relu}
%8 [T 8] = glu %7 %7 {relu2}
%9 [T 8] = glu %8 %8 {sigmoid}
%10 [T 8] = glu %9 %9 {quick_gelu}
%11 [T 8] = glu %10 %10 {tanh}
%12 [R 8] = pick %11
hidden %12, logits %12
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNormsAndGLUsRefuse(t *testing.T) {
	for name, f := range map[string]struct {
		build func(b *plan.Builder, x plan.Value)
		says  string
	}{
		"a norm that does not divide": {func(b *plan.Builder, x plan.Value) { b.LayerNorm(x, row(3), nil, 1) }, "groups of 3"},
		"a bias of another length":    {func(b *plan.Builder, x plan.Value) { b.LayerNorm(x, row(8), row(4), 1) }, "want shape [8], is [4]"},
		"a bias that is a matrix":     {func(b *plan.Builder, x plan.Value) { b.LayerNorm(x, row(8), matrix(1, 8), 1) }, "want shape [8]"},
		"an activation of no name":    {func(b *plan.Builder, x plan.Value) { b.GLU(x, x, plan.GLUAttr{Act: 99}) }, "activation(99)"},
		"a gate that does not divide": {func(b *plan.Builder, x plan.Value) { b.GLU(b.Embed(matrix(3, 3)), x, plan.GLUAttr{}) }, "a gate of 3 columns for 8"},
		"a clamp to nothing":          {func(b *plan.Builder, x plan.Value) { b.Clamp(x, -1) }, "cannot clamp to -1"},
		"a curve without end":         {func(b *plan.Builder, x plan.Value) { b.XIELU(x, plan.Curve{P: math.Inf(1)}) }, "xielu with a parameter of +Inf"},
	} {
		_, err := plan.Build(func(b *plan.Builder) { f.build(b, b.Embed(matrix(3, 8))) })
		if err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, f.says)
		}
	}
}

// A clamp to 0 is none.
func TestMaps(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Clamp(b.Embed(matrix(3, 8)), 0)
		x = b.Softplus(b.Clamp(x, 2.5))
		x = b.Pick(b.XIELU(x, plan.Curve{P: 0.8, N: 0.9, Beta: 0.5, Eps: -1e-6}))
		b.Output(x, b.Softcap(b.Scale(x, 2), 30))
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `%0 [T 8] = embed w:F32
%1 [T 8] = map %0 {clamp 2.5}
%2 [T 8] = map %1 {softplus}
%3 [T 8] = map %2 {xielu 0.8 0.9, beta 0.5, eps -1e-06}
%4 [R 8] = pick %3
%5 [R 8] = map %4 {scale 2}
%6 [R 8] = map %5 {softcap 30}
hidden %4, logits %6
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
