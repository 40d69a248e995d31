package main

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func labels(ticks []plot.Tick) string {
	var out []string
	for _, t := range ticks {
		if t.Label != "" {
			out = append(out, t.Label)
		}
	}
	return strings.Join(out, " ")
}

// TestLinearAxis checks that labels are multiples of 1, 2 or 5 times a power of ten.
func TestLinearAxis(t *testing.T) {
	for _, test := range []struct {
		steps     int
		low, high float64
		want      string
	}{
		{7, 0, 3400, "0 500 1000 1500 2000 2500 3000"},
		{7, 0, 90, "0 20 40 60 80"},
		{7, 0, 13, "0 2 4 6 8 10 12"},
		{8, 0, 2.8, "0.0 0.5 1.0 1.5 2.0 2.5"},
		{8, 0, 8, "0 1 2 3 4 5 6 7 8"},
		{10, 0, 0.001, "0.0000 0.0001 0.0002 0.0003 0.0004 0.0005 0.0006 0.0007 0.0008 0.0009 0.0010"},
		{5, 0.3, 0.9, "0.4 0.6 0.8"},
	} {
		if got := labels(linearAxis(test.steps).Ticks(test.low, test.high)); got != test.want {
			t.Errorf("%v to %v: %s, want %s", test.low, test.high, got, test.want)
		}
	}
}

// TestLogAxis checks that the limits of a logarithmic axis contain the values, and have labels.
func TestLogAxis(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      string
	}{
		{25, 40, "20 50"},
		{20, 50, "20 50"},
		{7, 7, "5 10"},
		{10, 10, "10 20"},
		{0.001, 0.001, "0.001 0.002"},
		{6.3, 410, "5 10 20 50 100 200 500"},
		{4, 1600, "1 10 100 1000 10000"},
		{0.004, 72, "0.001 0.01 0.1 1 10 100"},
	} {
		low, high := logLimits(test.low, test.high)
		got := labels(decades(low, high))
		if got != test.want || low > test.low*(1+rounding) || high < test.high*(1-rounding) {
			t.Errorf("%v to %v: an axis from %v to %v with the labels %s, want %s", test.low, test.high, low, high, got, test.want)
		}
	}
	for low := 1e-3; low < 1e4; low *= 1.37 {
		for high := low; high < 1e6; high *= 1.21 {
			from, to := logLimits(low, high)
			if n := len(strings.Fields(labels(decades(from, to)))); from > low*(1+rounding) || to < high*(1-rounding) || n < 2 || math.IsInf(to, 0) {
				t.Fatalf("%v to %v: an axis from %v to %v with %d labels", low, high, from, to, n)
			}
		}
	}
}
