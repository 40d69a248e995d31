package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan"
)

// positions returns a program that uses the first and the second position of a token.
func positions(t *testing.T) *plan.Program {
	t.Helper()
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Add(b.Embed(matrix(3, 8)), b.Position(matrix(4, 8), 0))
		x = b.Pick(b.Add(x, b.Position(matrix(2, 8), 1)))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPositions(t *testing.T) {
	p := positions(t)
	if s := p.String(); !strings.Contains(s, "= position w:F32\n") || !strings.Contains(s, "= position w:F32 {axis 1}\n") {
		t.Errorf("the program prints as\n%s", s)
	}
	if p.Positions != 4 || p.Axes != [2]int{2, 0} {
		t.Errorf("positions are below %d and %v, want 4 and [2 0]", p.Positions, p.Axes)
	}
	for _, axis := range []int{-1, 0, 3} {
		if _, err := plan.Build(func(b *plan.Builder) { b.Position(matrix(2, 8), axis) }); err == nil {
			t.Errorf("there is an axis %d", axis)
		}
	}
}

func TestBatchAxes(t *testing.T) {
	p, l := positions(t), &plan.Limits{Tokens: 4, Seqs: 1, Rows: 4}
	batch := func(axes ...int32) *plan.Batch {
		return &plan.Batch{Tokens: []int32{0, 1}, Positions: []int32{2, 3}, Start: []int32{0, 2}, Lengths: []int32{2}, Axes: axes}
	}
	for _, b := range []*plan.Batch{batch(), batch(0, 0, 1, 0)} {
		if err := b.Validate(p, l, 0); err != nil {
			t.Errorf("%v: %v", b.Axes, err)
		}
	}
	if b := batch(0, 0, 1, 0); b.Axis(0, 1) != 3 || b.Axis(1, 1) != 1 || b.Axis(2, 1) != 0 || batch().Axis(1, 1) != 0 {
		t.Errorf("token 1 has positions %d, %d, %d", b.Axis(0, 1), b.Axis(1, 1), b.Axis(2, 1))
	}
	for _, axes := range [][]int32{{0, 0}, {0, 0, 2, 0}, {0, 0, -1, 0}, {0, 1, 0, 0}, {0, 0, 0, 0, 0, 0}} {
		if err := batch(axes...).Validate(p, l, 0); !errors.Is(err, plan.ErrBatch) {
			t.Errorf("%v: %v, want a malformed batch", axes, err)
		}
	}
	b := batch()
	b.Positions = []int32{3, 4}
	if err := b.Validate(p, l, 0); !errors.Is(err, plan.ErrBatch) {
		t.Errorf("a position beyond the table: %v", err)
	}
	without, err := plan.Build(func(b *plan.Builder) {
		x := b.Pick(b.Embed(matrix(3, 8)))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := batch(0, 0, 0, 0).Validate(without, l, 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("second positions that a program does not go by: %v", err)
	}
}
