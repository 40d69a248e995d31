package main

import (
	"math"
	"testing"
)

func TestSignificant(t *testing.T) {
	for _, test := range []struct {
		f      figure
		digits int
		want   string
	}{
		{17.99485, 4, "17.99"}, {5.12345, 4, "5.123"}, {9.99996, 4, "10.00"}, {123.456, 4, "123.5"}, {98765.4, 4, "98765"},
		{0.81234567, 4, "0.8123"}, {0.01234567, 2, "0.012"}, {0, 2, "0.0"}, {31.4, 2, "31"}, {314, 2, "314"},
		{figure(math.Inf(1)), 4, "+Inf"}, {figure(math.NaN()), 2, "NaN"},
	} {
		if got := significant(test.f, test.digits); got != test.want {
			t.Errorf("%v with %d digits is %s, want %s", float64(test.f), test.digits, got, test.want)
		}
	}
}
