package plantest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// position adds a table's rows by position, from any first position, for one sequence or several.
func position(t *testing.T, b plan.Backend) {
	const vocab, positions, d = 7, 41, 256
	for _, format := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q6_K} {
		rng := newRand(uint64(format))
		embeddings := Weight(rng, "embed", tensor.F32, 1, vocab, d)
		table := Weight(rng, "positions", format, 1, positions, d)
		ids, places := matrix(embeddings), matrix(table)
		p := single(t, embeddings, func(b *plan.Builder, x plan.Value) plan.Value { return b.Add(x, b.Position(table, 0)) })
		exe, err := b.Compile(context.Background(), p, LimitsFor(p, 48, 3, positions, 16, plan.Limits{Cache: tensor.F32}), nil)
		if err != nil {
			t.Fatal(err)
		}
		// spans are the first and last positions of the sequences
		batch := func(spans ...[2]int) (*plan.Batch, [][]float64) {
			b, want := &plan.Batch{Start: []int32{0}, Tables: []plan.PageTable{}}, [][]float64(nil)
			for _, s := range spans {
				for pos := s[0]; pos <= s[1]; pos++ {
					id := rng.IntN(vocab)
					b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens)), Want: plan.WantLogits})
					b.Tokens, b.Positions = append(b.Tokens, int32(id)), append(b.Positions, int32(pos))
					row := make([]float64, d)
					if pos < positions {
						for i, v := range places[pos] {
							row[i] = v + ids[id][i]
						}
					}
					want = append(want, row)
				}
				b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(s[1]+1))
			}
			return b, want
		}
		for _, spans := range [][][2]int{{{0, 0}}, {{0, positions - 1}}, {{13, 20}}, {{positions - 1, positions - 1}}, {{5, 9}, {0, 17}, {30, positions - 1}}} {
			step, want := batch(spans...)
			s, err := exe.Submit(step)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("%v, positions %v", format, spans), wait(t, s).Logits, want, 1e-6, 0)
			s.Release()
		}
		for _, spans := range [][][2]int{{{positions, positions}}, {{0, 3}, {positions - 2, positions}}} {
			step, _ := batch(spans...)
			if _, err := exe.Submit(step); !errors.Is(err, plan.ErrBatch) {
				t.Errorf("%v, positions %v of %d: error %v", format, spans, positions, err)
			}
		}
		if err := exe.Close(); err != nil {
			t.Error(err)
		}
	}
}
