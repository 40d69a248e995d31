package cuda

import (
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Products of float32 weights have the same bits in steps of one row and of many.
func TestEmulatedFloats(t *testing.T) { floatsAgree(t, openEmulated(t)) }

// floatsAgree cuts a sequence into steps of several sizes, on devices of so few multiprocessors that
// all kernels of float32 weights run.
func floatsAgree(t *testing.T, b *Backend) {
	rng := newRand()
	w := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 0.2, rows, cols) }
	p := program(t, func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "embed", tensor.F32, 1, decoderVocab, 300))
		y := b.Concat(b.Linear(x, w(100, 300), plantest.Weight(rng, "bias", tensor.F32, 1, 100)), b.Linear(x, w(90, 300), nil))
		h := b.Pick(b.Add(x, b.Linear(y, w(300, 190), nil)))
		b.Output(h, b.Linear(h, w(decoderVocab, 300), nil))
	})
	const tokens = 130
	run := func(chunk int) [][]float32 { return logitsOf(t, b, p, tensor.F32, tokens, chunk) }
	want := run(1)
	for _, multiprocessors := range []int{132, 12, 1} { // the kernels of 8, 32 and 64 rows
		b.Info.Multiprocessors = multiprocessors
		for _, chunk := range []int{5, tokens} {
			for i, row := range run(chunk) {
				if !slices.Equal(row, want[i]) {
					t.Fatalf("%d multiprocessors: row %d has other bits in steps of %d", multiprocessors, i, chunk)
				}
			}
		}
	}
}
