package plan

import (
	"testing"

	"github.com/realizar/realizar/tensor"
)

func TestWhere(t *testing.T) {
	weight := func(name string) *tensor.Tensor { return &tensor.Tensor{Name: name} }
	for _, test := range []struct {
		nodes []*Node
		want  string
	}{
		{[]*Node{{Op: Embed, Weight: weight("table"), Layer: NoLayer}}, "embed table"},
		{[]*Node{{Op: Linear, Weight: weight("a"), Layer: 3}}, "layer 3 (linear a)"},
		{[]*Node{{Op: Linear, Weight: weight("a")}, {Op: Linear, Weight: weight("b")}, {Op: GLU}}, "layer 0 (linear a, b; glu)"},
		{[]*Node{{Op: RMSNorm, Weight: weight("n"), Layer: 1}, {Op: Rope, Layer: 1}, {Op: Rope, Layer: 1}, {Op: Attention, Weight: weight("sinks"), Layer: 1}},
			"layer 1 (rmsnorm n; rope; rope; attention sinks)"},
		{[]*Node{{Op: Pick, Layer: NoLayer}, {Op: RMSNorm, Weight: weight("n"), Layer: NoLayer}}, "pick; rmsnorm n"},
	} {
		if got := Where(test.nodes...); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestAttended(t *testing.T) {
	b := &Batch{Start: []int32{0, 1, 4}, Positions: []int32{9, 4, 5, 6}}
	for window, want := range map[int]int{0: 10 + 7, 100: 10 + 7, 1: 1 + 3, 3: 3 + 5} {
		if got := b.Attended(Group{Window: window}); got != want {
			t.Errorf("a window of %d: %d positions, want %d", window, got, want)
		}
	}
}
