package plantest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Derive returns w with a source of rows in place of its bytes.
func Derive(w *tensor.Tensor) *tensor.Tensor {
	return &tensor.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape, Source: source{w}}
}

// A source reads the rows of a tensor.
type source struct{ *tensor.Tensor }

func (s source) Parts() []*tensor.Tensor { return []*tensor.Tensor{s.Tensor} }

// A failing source cannot be read.
type failing struct{}

var errDamaged = errors.New("damaged")

func (failing) ReadRows([]byte, int, int) error { return errDamaged }

func (failing) Parts() []*tensor.Tensor { return nil }

// derived checks that weights that are read by rows give the same bits as weights with bytes, and
// that Compile returns the error of reading them.
func derived(t *testing.T, b plan.Backend) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.F8_E4M3_32, tensor.Q4_0, tensor.Q5_0, tensor.Q6_K} {
		for _, rows := range []int{1, 33, 300} {
			rng := newRand(uint64(d) + uint64(rows))
			table, w := Weight(rng, "table", d, 1, 97, 256), Weight(rng, "w", d, 0.06, rows, 256)
			fused := Weight(rng, "fused", d, 0.06, 3*rows, 256)
			bias, norm := vector(rng, "bias", 0, 1, rows), vector(rng, "norm", 1, 0.3, 256)
			program := func(derive func(*tensor.Tensor) *tensor.Tensor) *plan.Program {
				return build(t, func(b *plan.Builder) {
					x := b.RMSNorm(b.Embed(derive(table)), derive(norm), 1e-5)
					y := b.Add(b.Linear(x, derive(w), derive(bias)), b.Linear(x, derive(fused).RowSlice(rows, 2*rows), nil))
					y = b.Pick(y)
					b.Output(y, y)
				})
			}
			plain, read := program(func(w *tensor.Tensor) *tensor.Tensor { return w }), program(Derive)
			for _, activations := range []tensor.DType{tensor.F32, b.Rounds()} {
				what := fmt.Sprintf("%v, %d rows, %v activations", d, rows, activations)
				tokens, lim := ids(rng, 9, 97), plan.Limits{Cache: tensor.F32, Activations: activations}
				got, want := outputsWith(t, b, read, tokens, lim, 16, 0), outputsWith(t, b, plain, tokens, lim, 16, 0)
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Fatalf("%s: token %d differs from that of weights with data", what, i)
					}
				}
				limits := LimitsFor(plain, 9, 1, 16, 16, lim)
				if n := b.Weights(read, limits); n < w.Size()+table.Size() {
					t.Errorf("%s: Weights says %d bytes for derived weights of %d bytes", what, n, w.Size()+table.Size())
				}
				for _, bad := range []string{"table", "w", "fused"} {
					p := program(func(w *tensor.Tensor) *tensor.Tensor {
						if w = Derive(w); w.Name == bad {
							w.Source = failing{}
						}
						return w
					})
					if exe, err := b.Compile(context.Background(), p, limits, nil); !errors.Is(err, errDamaged) {
						t.Errorf("%s: %s cannot be read: %v", what, bad, err)
						if err == nil {
							_ = exe.Close()
						}
					}
				}
			}
		}
	}
}
