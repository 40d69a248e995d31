package sample_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/sample"
)

func TestTop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ties := make([]float32, 500)
	for i := range ties {
		ties[i] = float32(rng.IntN(9))
	}
	ascending := make([]float32, 500)
	for i := range ascending {
		ascending[i] = float32(i)
	}
	holes := slices.Clone(ties)
	for i := range holes {
		if i%50 != 7 {
			holes[i] = negInf
		}
	}
	descending := slices.Clone(ascending)
	slices.Reverse(descending)
	for name, logits := range map[string][]float32{
		"ties": ties, "ascending": ascending, "descending": descending, "holes": holes, "one": {3}, "vocabulary": vocabulary(20_000),
	} {
		for _, k := range []int{0, 1, 2, 3, 20, 128, 499, 500, 501} {
			var ids []int32
			for i, v := range logits {
				if v != negInf {
					ids = append(ids, int32(i))
				}
			}
			slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
			ids = ids[:min(k, len(ids))]
			var got []int32
			for _, top := range sample.Top(logits, k, make([]sample.TopToken, 2)) {
				got = append(got, top.Token)
				if want := sample.LogProbability(logits, top.Token); top.LogProbability != want {
					t.Errorf("%s: token %d has the log-probability %v, want %v", name, top.Token, top.LogProbability, want)
				}
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%s, %d: %v, want %v", name, k, got, ids)
			}
		}
	}
}

func TestTopDoesNotAllocate(t *testing.T) {
	logits := vocabulary(10_000)
	dst := make([]sample.TopToken, 0, 200)
	if n := testing.AllocsPerRun(10, func() { dst = sample.Top(logits, 200, dst) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
