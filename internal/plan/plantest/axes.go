package plantest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// axes adds the rows of tables by a token's second and third position, which are 0 if the batch has
// none. A backend without second positions must refuse to compile the program.
func axes(t *testing.T, b plan.Backend) {
	const vocab, d, second, third = 7, 64, 2, 5
	for _, format := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0} {
		rng := newRand(uint64(format) + 100)
		embeddings := Weight(rng, "embed", tensor.F32, 1, vocab, d)
		tables := [2]*tensor.Tensor{Weight(rng, "second", format, 1, second, d), Weight(rng, "third", format, 1, third, d)}
		ids, places := matrix(embeddings), [2][][]float64{matrix(tables[0]), matrix(tables[1])}
		p := single(t, embeddings, func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Add(b.Add(x, b.Position(tables[0], 1)), b.Position(tables[1], 2))
		})
		exe, err := b.Compile(context.Background(), p, LimitsFor(p, 20, 2, 16, 16, plan.Limits{Cache: tensor.F32}), nil)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, has := range []bool{false, true} {
			step, want := &plan.Batch{Start: []int32{0, 4, 20}, Lengths: []int32{4, 16}, Tables: []plan.PageTable{}}, [][]float64(nil)
			for i := range 20 {
				axis := [2]int{}
				if has {
					axis = [2]int{rng.IntN(second), rng.IntN(third)}
					step.Axes = append(step.Axes, int32(axis[0]), int32(axis[1]))
				}
				id, pos := rng.IntN(vocab), i
				if i >= 4 {
					pos -= 4
				}
				step.Tokens, step.Positions = append(step.Tokens, int32(id)), append(step.Positions, int32(pos))
				step.Rows = append(step.Rows, plan.Row{Token: int32(i), Want: plan.WantLogits})
				row := make([]float64, d)
				for k := range row {
					row[k] = ids[id][k] + places[0][axis[0]][k] + places[1][axis[1]][k]
				}
				want = append(want, row)
			}
			s, err := exe.Submit(step)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("%v, with axes: %v", format, has), wait(t, s).Logits, want, 1e-6, 0)
			s.Release()
		}
		if err := exe.Close(); err != nil {
			t.Error(err)
		}
	}
}
