package watch

import (
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// A Histogram counts values by upper bounds. The zero Histogram has none.
type Histogram struct {
	bounds []float64 // finite, ascending
	counts []float64 // values up to each bound and above the previous one; the last counts those above all
}

// newHistogram converts from. It returns an empty histogram if from is invalid, for example if its
// cumulative counts decrease.
func newHistogram(from *dto.Histogram) Histogram {
	type bucket struct{ bound, below float64 }
	var all []bucket
	for _, b := range from.GetBucket() {
		bound := b.GetUpperBound()
		below := float64(b.GetCumulativeCount())
		if b.CumulativeCountFloat != nil {
			below = b.GetCumulativeCountFloat()
		}
		if bound >= -most && bound <= most {
			all = append(all, bucket{bound, below})
		}
	}
	slices.SortStableFunc(all, func(a, b bucket) int {
		if a.bound < b.bound {
			return -1
		} else if a.bound > b.bound {
			return 1
		}
		return 0
	})
	count := float64(from.GetSampleCount())
	if from != nil && from.SampleCountFloat != nil {
		count = from.GetSampleCountFloat()
	}
	var h Histogram
	below := 0.0
	for i, b := range all {
		if !(b.below >= below && b.below <= most) || i > 0 && b.bound == all[i-1].bound {
			return Histogram{}
		}
		h.bounds, h.counts = append(h.bounds, b.bound), append(h.counts, b.below-below)
		below = b.below
	}
	if !(count >= below && count <= most) {
		return Histogram{}
	}
	h.counts = append(h.counts, count-below)
	return h
}

// Count returns the number of values.
func (h Histogram) Count() (n float64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// plus returns the sum of h and other. It ignores a histogram with other bounds. A histogram
// without values may have no bounds, as that of a model that was never loaded.
func (h Histogram) plus(other Histogram) Histogram {
	if len(h.bounds) == 0 && h.Count() == 0 {
		return other
	}
	if !slices.Equal(h.bounds, other.bounds) || len(h.counts) != len(other.counts) {
		return h
	}
	both := Histogram{h.bounds, slices.Clone(h.counts)}
	for i, c := range other.counts {
		both.counts[i] += c
	}
	return both
}

// since returns the values added to h after before. If before has other bounds, that is all of h;
// if before has more values, since a model is not served any more, it is not known.
func (h Histogram) since(before Histogram) Histogram {
	if !slices.Equal(h.bounds, before.bounds) || len(h.counts) != len(before.counts) {
		return h
	}
	grown := Histogram{h.bounds, slices.Clone(h.counts)}
	for i, c := range before.counts {
		if grown.counts[i] -= c; grown.counts[i] < 0 {
			return Histogram{}
		}
	}
	return grown
}

// A Quantile is a value that a share of all values do not exceed, as far as buckets show: the
// values of a bucket count as evenly spread between its bounds.
type Quantile struct {
	Value float64 // NaN if there are no values
	Above bool    // the quantile is above Value, the last bound
}

// Quantile returns the quantile of a share from 0 to 1.
func (h Histogram) Quantile(share float64) Quantile {
	n := h.Count()
	if n == 0 || len(h.bounds) == 0 {
		return Quantile{Value: math.NaN()}
	}
	rank, below := share*n, 0.0
	for i, bound := range h.bounds {
		c := h.counts[i]
		if c > 0 && below+c >= rank {
			low := min(0, bound)
			if i > 0 {
				low = h.bounds[i-1]
			}
			return Quantile{Value: min(bound, low+(bound-low)*max(0, rank-below)/c)} // rounding may exceed the bound
		}
		below += c
	}
	return Quantile{Value: h.bounds[len(h.bounds)-1], Above: true}
}
