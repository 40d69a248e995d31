package lower

import (
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Pages have room for keys and values of any lengths; those of exact states are float32.
func TestPlanPools(t *testing.T) {
	table := &tensor.Tensor{Name: "embed", DType: tensor.F32, Shape: []int{4, 8}, Data: make([]byte, 4*4*8)}
	for _, c := range []struct {
		state plan.State
		bytes int
	}{
		{plan.State{Name: "kv", KVHeads: 2, HeadDim: 32, ValueDim: 32, Window: 8}, 2 * 64 * 16 * 2},
		{plan.State{Name: "kv", KVHeads: 2, HeadDim: 32, ValueDim: 48, Chunk: 8}, 2 * 80 * 16 * 2},
		{plan.State{Name: "kv", KVHeads: 1, HeadDim: 576}, 576 * 16 * 2},
		{plan.State{Name: "rows", KVHeads: 1, HeadDim: 32, ValueDim: 32, Chunk: 64, Exact: true}, 64 * 16 * 4},
		{plan.State{Name: "matrix", Kind: plan.PerSequence, Size: 60, Every: 64}, 60 * 4},
	} {
		p, err := plan.Build(func(b *plan.Builder) {
			b.State(c.state)
			x := b.Pick(b.Embed(table))
			b.Output(x, x)
		})
		if err != nil {
			t.Fatal(err)
		}
		pools, bytes, err := PlanPools(p, &plan.Limits{PageTokens: 16, Pages: []int{3}, Cache: tensor.F16})
		if err != nil {
			t.Fatal(err)
		}
		if k := pools[0]; k.Bytes != c.bytes || k.Apart < k.Bytes || k.Apart%256 != 0 || bytes != 3*k.Apart {
			t.Errorf("%v: pages of %d bytes, %d apart, %d in all; want pages of %d", c.state, k.Bytes, k.Apart, bytes, c.bytes)
		}
	}
}
