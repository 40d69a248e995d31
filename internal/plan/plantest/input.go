package plantest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// inputs checks that a program computes the same bits from inputs as from rows of tables with the same
// numbers.
func inputs(t *testing.T, b plan.Backend) {
	for _, c := range [][2]int{{256, 7}, {1, 33}, {512, 64}} {
		for _, activations := range []tensor.DType{tensor.F32, b.Rounds()} {
			rng := newRand(uint64(c[0]))
			tables := [2]*tensor.Tensor{Weight(rng, "left", tensor.F32, 1, 19, c[0]), Weight(rng, "right", tensor.F32, 1, 19, c[1])}
			w := Weight(rng, "w", tensor.F16, 0.3, 48, c[0])
			tokens := ids(rng, 21, 19)
			result := func(b *plan.Builder, x, y plan.Value) plan.Value { return b.Concat(b.Linear(x, w, nil), y) }
			embedded := single(t, tables[0], func(b *plan.Builder, x plan.Value) plan.Value { return result(b, x, b.Embed(tables[1])) })
			given := build(t, func(b *plan.Builder) {
				x, y := b.Input(c[0]), b.Input(c[1])
				b.Embed(tables[0])
				z := b.Pick(result(b, x, y))
				b.Output(z, z)
			})
			run := func(p *plan.Program, input [][]float32, n int) (rows [][]float32) {
				exe, err := b.Compile(context.Background(), p, plan.Limits{Tokens: 32, Seqs: 2, Rows: 32, PageTokens: 16, Cache: tensor.F32, Activations: activations}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = exe.Close() }()
				for first := 0; first < len(tokens); first += n {
					end := min(first+n, len(tokens))
					batch := &plan.Batch{Tokens: tokens[first:end], Start: []int32{0, int32(end - first)}, Lengths: []int32{int32(len(tokens))}, Tables: []plan.PageTable{}}
					for i := first; i < end; i++ {
						batch.Positions = append(batch.Positions, int32(i))
						batch.Rows = append(batch.Rows, plan.Row{Token: int32(i - first), Want: plan.WantHidden})
					}
					if input != nil {
						batch.Input = input[first:end]
					}
					step, err := exe.Submit(batch)
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range wait(t, step).Hidden {
						rows = append(rows, append([]float32(nil), row...))
					}
					step.Release()
				}
				return rows
			}
			want := run(embedded, nil, len(tokens))
			var input [][]float32
			for i := range tokens {
				row := make([]float32, c[0]+c[1])
				at := 0
				for _, table := range tables {
					for _, v := range rowsOf(matrix(table), tokens)[i] {
						row[at], at = float32(v), at+1
					}
				}
				input = append(input, row)
			}
			for _, n := range []int{1, 8, len(tokens)} {
				same(t, fmt.Sprintf("%d and %d columns, %v activations, steps of %d", c[0], c[1], activations, n), run(given, input, n), want)
			}
		}
	}
}

// A step whose inputs are not those of its program is malformed.
func inputsMalformed(t *testing.T, b plan.Backend) {
	p := build(t, func(b *plan.Builder) {
		x := b.Input(3)
		b.Embed(Weight(newRand(1), "table", tensor.F32, 1, 19, 3))
		y := b.Pick(x)
		b.Output(y, y)
	})
	exe, err := b.Compile(context.Background(), p, plan.Limits{Tokens: 2, Seqs: 1, Rows: 2, PageTokens: 16, Cache: tensor.F32}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	good := func() *plan.Batch {
		return &plan.Batch{Tokens: []int32{1, 2}, Positions: []int32{0, 1}, Start: []int32{0, 2}, Lengths: []int32{2}, Tables: []plan.PageTable{}, Input: [][]float32{{1, 2, 3}, {4, 5, 6}}}
	}
	step, err := exe.Submit(good())
	if err != nil {
		t.Fatal(err)
	}
	wait(t, step)
	step.Release()
	for name, spoil := range map[string]func(b *plan.Batch){
		"none":                        func(b *plan.Batch) { b.Input = nil },
		"one too few":                 func(b *plan.Batch) { b.Input = b.Input[:1] },
		"a short one":                 func(b *plan.Batch) { b.Input[1] = b.Input[1][:2] },
		"a long one":                  func(b *plan.Batch) { b.Input[0] = make([]float32, 4) },
		"tokens of the previous step": func(b *plan.Batch) { b.From = []int32{-1, -1} },
	} {
		bad := good()
		spoil(bad)
		if _, err := exe.Submit(bad); !errors.Is(err, plan.ErrBatch) {
			t.Errorf("inputs, %s: %v, want a malformed batch", name, err)
		}
	}
}
