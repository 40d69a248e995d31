package plantest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
)

// LogitsOfTwo returns the logits of two sequences of these lengths, which run
// together: the first in steps of 23 tokens, the second one by one.
func LogitsOfTwo(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits, lengths [2]int) [][]float32 {
	t.Helper()
	return LogitsInSteps(t, b, p, base, lengths, 23)
}

// LogitsInSteps is LogitsOfTwo for other steps of the first sequence.
func LogitsInSteps(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits, lengths [2]int, tokens int) [][]float32 {
	t.Helper()
	r, err := NewRunner(b, p, LimitsFor(p, max(32, tokens+1), 2, max(96, lengths[0], lengths[1]), 16, base))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Exe.Close(); err != nil {
			t.Error(err)
		}
	}()
	rng := rand.New(rand.NewPCG(3, 4))
	one, other := r.Add(ids(rng, lengths[0], p.Vocab), tokens), r.Add(ids(rng, lengths[1], p.Vocab), 1)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	return append(one.Logits, other.Logits...)
}

// SameAsOne reports the first logit of several devices that has other bits than on one.
func SameAsOne(t *testing.T, got, one [][]float32) {
	t.Helper()
	if len(got) != len(one) {
		t.Fatalf("%d rows of logits, on one device %d", len(got), len(one))
	}
	for i := range one {
		for j, w := range one[i] {
			if math.Float32bits(got[i][j]) != math.Float32bits(w) {
				t.Fatalf("row %d, token %d: logit %v, on one device %v", i, j, got[i][j], w)
			}
		}
		if blank(one[i]) {
			t.Fatalf("row %d is zeros, as that of a device that computes nothing", i)
		}
	}
}
