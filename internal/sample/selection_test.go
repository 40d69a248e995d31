package sample

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRankIsDescendingLogitThenAscendingID(t *testing.T) {
	logits := []float32{
		math.MaxFloat32, 1e30, 2, 1, math.SmallestNonzeroFloat32, 0,
		-math.SmallestNonzeroFloat32, -1, -2, -1e30, -math.MaxFloat32,
	}
	for i, a := range logits {
		for _, b := range logits[i+1:] {
			if rank(a, math.MaxInt32) >= rank(b, 0) {
				t.Errorf("%v is not ranked before %v", a, b)
			}
		}
		if rank(a, 6) >= rank(a, 7) {
			t.Errorf("the lower id is not ranked first among equal logits %v", a)
		}
	}
	zero, minusZero := float32(0), float32(math.Copysign(0, -1))
	if rank(zero, 5) != rank(minusZero, 5) {
		t.Error("0 and -0 are ranked differently")
	}
	for _, id := range []int32{0, 1, 151935, math.MaxInt32} {
		if got := (candidate{rank: rank(-3, id)}).id(); got != id {
			t.Errorf("id %d came back as %d", id, got)
		}
	}
}

func TestCrossingAgreesWithSorting(t *testing.T) {
	var s selector
	rapid.Check(t, func(t *rapid.T) {
		n := drawLength(t, 300)
		ranks := rapid.SliceOfNDistinct(rapid.OneOf(
			rapid.Uint64(), // spread over the whole range
			rapid.Uint64Range(1<<40, 1<<40+3000),
			rapid.Uint64Range(math.MaxUint64-5000, math.MaxUint64),
		), n, n, rapid.ID[uint64]).Draw(t, "ranks")
		c := make([]candidate, len(ranks))
		for i, r := range ranks {
			c[i] = candidate{r, rapid.Uint64Range(0, 4).Draw(t, "weight")}
		}
		c[0].weight++
		target := rapid.Uint64Range(1, totalWeight(c)).Draw(t, "target")

		sorted := slices.SortedFunc(slices.Values(c), func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
		var want candidate
		for sum := uint64(0); sum < target; sorted = sorted[1:] {
			want = sorted[0]
			sum += want.weight
		}
		before := slices.Clone(c)
		if got := s.crossing(c, target); got != want {
			t.Errorf("crossing(%v, %d) = %v, want %v", c, target, got, want)
		}
		if !slices.Equal(c, before) {
			t.Error("crossing changed its input")
		}
	})
}
