package watch

import (
	"math"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// histogramOf counts values as a server does.
func histogramOf(bounds, values []float64) *dto.Histogram {
	h := &dto.Histogram{SampleCount: proto.Uint64(uint64(len(values)))}
	for _, bound := range append(slices.Clone(bounds), math.Inf(1)) {
		below := uint64(0)
		for _, v := range values {
			if v <= bound {
				below++
			}
		}
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: proto.Float64(bound), CumulativeCount: proto.Uint64(below)})
	}
	return h
}

func TestQuantile(t *testing.T) {
	bounds := []float64{1, 2, 4, 8}
	for _, test := range []struct {
		what   string
		values []float64
		share  float64
		want   float64
		above  bool
	}{
		{"no values", nil, .5, math.NaN(), false},
		{"one, in the middle of its bucket", []float64{3}, .5, 3, false},
		{"the first bucket begins at 0", []float64{.9, .9}, .5, .5, false},
		{"a whole bucket", []float64{.5, 3, 3, 3}, 1, 4, false},
		{"at a bound", []float64{.5, 3}, .5, 1, false},
		{"between others", []float64{.5, .5, 3, 3, 3, 3, 7, 7}, .5, 3, false},
		{"an empty bucket is passed", []float64{.5, 7}, .75, 6, false},
		{"above the last bound", []float64{.5, 9, 10}, .9, 8, true},
		{"the least of all", []float64{3, 3}, 0, 2, false},
		{"at the last bound", []float64{8}, 1, 8, false},
	} {
		got := newHistogram(histogramOf(bounds, test.values)).Quantile(test.share)
		if got.Above != test.above || got.Value != test.want && !(math.IsNaN(got.Value) && math.IsNaN(test.want)) {
			t.Errorf("%s: the %v quantile of %v is %+v, want %v, above: %v", test.what, test.share, test.values, got, test.want, test.above)
		}
	}
	low, high := 1.0000000000000107, 11.75 // low + (high - low) rounds to more than high
	if q := newHistogram(histogramOf([]float64{low, high}, []float64{1.5})).Quantile(1); q.Value != high {
		t.Errorf("the last of a bucket up to %v is %v", high, q.Value)
	}
	if q := (Histogram{}).Quantile(.5); !math.IsNaN(q.Value) || q.Above {
		t.Errorf("a histogram without buckets has the quantile %+v", q)
	}
}

// A quantile is in the bucket of the exact one, and Above is set if that is above all bounds. The
// same holds for sums and differences of histograms.
func TestQuantileExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SliceOfNDistinct(rapid.Float64Range(.001, 100), 1, 12, rapid.ID[float64]).Draw(t, "bounds")
		slices.Sort(bounds)
		value := rapid.Float64Range(0, 150)
		before, later := rapid.SliceOfN(value, 0, 40).Draw(t, "before"), rapid.SliceOfN(value, 1, 40).Draw(t, "later")
		share := rapid.Float64Range(.001, 1).Draw(t, "share")
		all := slices.Concat(before, later)
		of := func(values []float64) Histogram { return newHistogram(histogramOf(bounds, values)) }
		for _, h := range []struct {
			what   string
			h      Histogram
			values []float64
		}{{"all", of(all), all}, {"what came", of(all).since(of(before)), later}, {"both", of(before).plus(of(later)), all}} {
			if h.h.Count() != float64(len(h.values)) {
				t.Fatalf("%s: %v values, want %d", h.what, h.h.Count(), len(h.values))
			}
			sorted := slices.Sorted(slices.Values(h.values))
			exact := sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
			i, _ := slices.BinarySearch(bounds, exact)
			q := h.h.Quantile(share)
			if q.Above != (i == len(bounds)) {
				t.Fatalf("%s: the quantile is %+v, exactly %v", h.what, q, exact)
			}
			low, high := 0.0, bounds[min(i, len(bounds)-1)]
			if q.Above {
				low = high
			} else if i > 0 {
				low = bounds[i-1]
			}
			if !(q.Value >= low && q.Value <= high) {
				t.Fatalf("%s: the quantile is %v, exactly %v, in a bucket from %v to %v", h.what, q.Value, exact, low, high)
			}
		}
	})
}

// An invalid histogram has no values.
func TestStrangeHistograms(t *testing.T) {
	bucket := func(bound float64, n uint64) *dto.Bucket {
		return &dto.Bucket{UpperBound: proto.Float64(bound), CumulativeCount: proto.Uint64(n)}
	}
	for what, h := range map[string]*dto.Histogram{
		"nothing":                   nil,
		"counts that become less":   {SampleCount: proto.Uint64(9), Bucket: []*dto.Bucket{bucket(1, 5), bucket(2, 4)}},
		"a bound twice":             {SampleCount: proto.Uint64(9), Bucket: []*dto.Bucket{bucket(1, 5), bucket(1, 5)}},
		"fewer in all than below":   {SampleCount: proto.Uint64(4), Bucket: []*dto.Bucket{bucket(1, 5)}},
		"more than can be":          {SampleCount: proto.Uint64(math.MaxUint64), Bucket: []*dto.Bucket{bucket(1, math.MaxUint64)}},
		"a count that is no number": {SampleCountFloat: proto.Float64(math.NaN())},
	} {
		if got := newHistogram(h); got.Count() != 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	h := newHistogram(histogramOf([]float64{1, 2}, []float64{.5, 1.5}))
	if other := newHistogram(histogramOf([]float64{1, 3}, []float64{.5})); h.plus(other).Count() != 2 || h.since(other).Count() != 2 {
		t.Errorf("a histogram of other bounds is added or taken away")
	}
	unsorted := &dto.Histogram{SampleCount: proto.Uint64(3), Bucket: []*dto.Bucket{bucket(math.Inf(1), 3), bucket(2, 3), bucket(1, 1)}}
	if q := newHistogram(unsorted).Quantile(1); q.Value != 2 || q.Above {
		t.Errorf("buckets in another order: %+v", q)
	}
}
