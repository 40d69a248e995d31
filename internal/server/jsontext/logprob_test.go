package jsontext

import (
	"math"
	"testing"
)

func TestAppendLogProb(t *testing.T) {
	for p, want := range map[float64]string{-0.25: "-0.25", math.Copysign(0, -1): "0", math.Inf(-1): "-9999", math.NaN(): "-9999", -1e-9: "-1e-09"} {
		if got := string(AppendLogProb(nil, p)); got != want {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
}
