package lower

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// States that no kernel reads are refused by name before memory is planned for them.
func TestPoolsOfStatesInChunks(t *testing.T) {
	table := &tensor.Tensor{Name: "embed", DType: tensor.F32, Shape: []int{4, 8}, Data: make([]byte, 4*4*8)}
	for what, s := range map[string]plan.State{
		"":         {Name: "kv", KVHeads: 1, HeadDim: 32, ValueDim: 32, Window: 8},
		"chunk 8":  {Name: "kv", KVHeads: 1, HeadDim: 32, ValueDim: 32, Chunk: 8},
		"exact":    {Name: "kv", KVHeads: 1, HeadDim: 32, ValueDim: 32, Exact: true},
		"every 64": {Name: "matrix", Kind: plan.PerSequence, Size: 64, Every: 64},
		"size 64":  {Name: "matrix", Kind: plan.PerSequence, Size: 64},
	} {
		p, err := plan.Build(func(b *plan.Builder) {
			b.State(s)
			x := b.Pick(b.Embed(table))
			b.Output(x, x)
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = PlanPools(p, &plan.Limits{PageTokens: 16, Pages: []int{3}, Cache: tensor.F16})
		if refused := s.Chunk > 0 || s.Exact || s.Every > 0; refused != (err != nil) || refused && (!strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "--device cpu")) {
			t.Errorf("%v: %v", s, err)
		}
	}
}
