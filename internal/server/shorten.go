package server

import "math"

// Shorten returns the first n elements of an embedding, scaled to unit length. It changes v.
func Shorten(v []float32, n int) []float32 {
	v = v[:n]
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		return v
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}
