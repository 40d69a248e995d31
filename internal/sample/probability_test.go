package sample_test

import (
	"math"
	"testing"

	"github.com/realizar/realizar/internal/sample"
)

func TestLogProbability(t *testing.T) {
	equal := make([]float32, 151936)
	for i := range equal {
		equal[i] = -7.5
	}
	for _, test := range []struct {
		name   string
		logits []float32
		id     int32
		want   float64
	}{
		{"one token", []float32{-3}, 0, 0},
		{"odds of 3 to 1", []float32{float32(math.Log(3)), 0}, 1, -math.Log(4)},
		{"odds of 3 to 1, the likelier", []float32{float32(math.Log(3)), 0}, 0, math.Log(0.75)},
		{"equals", equal, 150000, -math.Log(151936)},
		{"far above", []float32{3000, 2999, 0}, 1, -1 - math.Log1p(math.Exp(-1))},
		{"far below", []float32{-3000, -3000}, 0, -math.Ln2},
		{"hardly likely", []float32{5, -995, 5}, 1, -1000 - math.Ln2},
		{"with logits of -Inf", []float32{1, negInf, 1, negInf}, 2, -math.Ln2},
		{"never chosen", []float32{1, negInf}, 1, math.Inf(-1)},
	} {
		got := sample.LogProbability(test.logits, test.id)
		if got != test.want && !(math.Abs(got-test.want) <= 1e-7) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
