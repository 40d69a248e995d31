package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
)

// A model takes its share of each GPU that runs it, and shares the first one with models that name no
// number.
func TestNeedOf(t *testing.T) {
	for _, c := range []struct {
		least realizar.LeastMemory
		want  pool.Need
	}{
		{realizar.LeastMemory{Device: "cpu", Bytes: 7}, pool.Need{"cpu": 7}},
		{realizar.LeastMemory{Device: "cuda", Numbers: []int{0}, Bytes: 7}, pool.Need{"cuda": 7}},
		{realizar.LeastMemory{Device: "cuda", Numbers: []int{3}, Bytes: 7}, pool.Need{"cuda:3": 7}},
		{realizar.LeastMemory{Device: "cuda", Numbers: []int{1, 0}, Shares: []float64{0.5, 0.5}, Bytes: 7}, pool.Need{"cuda": 4, "cuda:1": 4}},
		{realizar.LeastMemory{Device: "cuda", Numbers: []int{1, 2}, Shares: []float64{0.25, 0.75}, Bytes: 8}, pool.Need{"cuda:1": 2, "cuda:2": 6}},
	} {
		if got := needOf(&c.least); !maps.Equal(got, c.want) {
			t.Errorf("%+v needs %v, want %v", c.least, got, c.want)
		}
		if got := freeOf(&c.least); len(got) != len(c.want) || len(c.least.Shares) == 0 && !slices.Equal(slices.Collect(maps.Values(got)), []int64{unlimited}) {
			t.Errorf("%+v may take %v", c.least, got)
		}
	}
}
