//go:build gpu

package cuda

import (
	"context"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// A row whose adjustments stay in host memory samples the same tokens as it does alone, with room
// on the device. Its logits are restored as well.
func TestGPUAdjustmentsOfTheHost(t *testing.T) {
	b := openGPU(t, Options{})
	p := wide(t)
	e := compiled(t, b, p, limitsFor(p, 8, 4))
	const each = lower.RoomyAdjustments/2 - 7
	batch := func(tokens ...int) *plan.Batch {
		x := batchOf(p, len(tokens), 0, 1)
		for i, n := range tokens {
			x.Tokens[i] = int32(n)
			row := &x.Rows[i]
			row.Want = plan.WantToken | plan.WantLogits | plan.WantLogProbability
			row.Sampling = sample.Params{Temperature: 0.8, Seed: uint64(n), Repetition: 1.3, Presence: 0.5}
			for k := range each {
				row.Adjustments = append(row.Adjustments, sample.Adjustment{Token: int32(5*k + n), Bias: float32(k%11) - 5, Count: int32(k % 3)})
			}
		}
		return x
	}
	result := func(x *plan.Batch) (tokens []int32, logProbabilities []float32, logits [][]float32) {
		s, err := e.Submit(x)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Release()
		r, err := s.Wait(context.Background())
		if err != nil || r.Err != nil {
			t.Fatal(err, r)
		}
		for _, row := range r.Logits {
			logits = append(logits, slices.Clone(row))
		}
		return slices.Clone(r.Tokens), slices.Clone(r.LogProbabilities), logits
	}
	all := []int{3, 7, 11, 19}
	tokens, logProbabilities, logits := result(batch(all...))
	for i, n := range all {
		token, logProbability, alone := result(batch(n))
		if token[0] != tokens[i] || logProbability[0] != logProbabilities[i] {
			t.Errorf("row %d chooses %d (%v), alone %d (%v)", i, tokens[i], logProbabilities[i], token[0], logProbability[0])
		}
		sameLogits(t, "logits", logits[i:i+1], alone)
	}
}
