package tensor

import "math"

// Scales are fitted by least squares. The nearest integers depend on the scale, and the best scale
// depends on the integers. So several scales near the one that just spans the values are tried,
// each improved once for the integers that it gives.
//
// Sums are float64. Their terms are products of a float32 and a small integer, which are exact in
// float64, or are rounded by an explicit conversion. So machines with fused multiply-add give the
// same results.

// nearest returns the integer from lo to hi that is nearest to v. |v| must be below 2^51.
func nearest(v float64, lo, hi int) int {
	// The sum has no bits for a fraction, and its last bits count from the middle.
	const middle = 0x1.8p52
	q := int(int64(math.Float64bits(v+middle) - middleBits))
	return min(max(q, lo), hi)
}

// middleBits are the bits of 1.5·2^52.
const middleBits = 0x4338000000000000

// fitTries is the number of scales tried on either side, in tenths of a step.
const fitTries = 9

// fitScale returns the scale for which the products with integers from lo to hi are nearest to x; 0
// if all values are 0.
func fitScale(x []float32, lo, hi int) float64 {
	top := float64(largestOf(x))
	if top == 0 {
		return 0
	}
	scale, best := 0.0, 0.0
	for _, end := range [2]int{lo, hi} {
		for try := -fitTries; try <= fitTries; try++ {
			inverse := (float64(end) + float64(try)/10) / top
			xq, qq := 0.0, 0
			for _, v := range x {
				q := nearest(float64(float64(v)*inverse), lo, hi)
				xq += float64(v) * float64(q)
				qq += q * q
			}
			if qq == 0 {
				continue
			}
			// The sum of squared differences is that of x minus gain.
			if gain := xq * xq / float64(qq); gain > best {
				scale, best = xq/float64(qq), gain
			}
		}
	}
	return scale
}

// fitLine returns the scale, at least 0, and the offset, at most 0, for which offset + scale·q,
// with q from 0 to top, is nearest to x.
func fitLine(x []float32, top int) (scale, offset float64) {
	lowest, highest, sumX := 0.0, float64(x[0]), 0.0
	for _, v := range x {
		lowest, highest = min(lowest, float64(v)), max(highest, float64(v))
		sumX += float64(v)
	}
	if highest <= lowest { // equal values, none above 0
		return 0, lowest
	}
	n := float64(len(x))
	best := math.Inf(1)
	for try := -fitTries; try <= fitTries; try++ {
		inverse := (float64(top) + float64(try)/10) / (highest - lowest)
		sumQ, sumQQ, sumXQ := 0, 0, 0.0
		for _, v := range x {
			q := nearest(float64((float64(v)-lowest)*inverse), 0, top)
			sumQ += q
			sumQQ += q * q
			sumXQ += float64(v) * float64(q)
		}
		if sumQQ == 0 {
			continue
		}
		q, qq := float64(sumQ), float64(sumQQ)
		a, b := sumXQ/qq, 0.0
		if determinant := n*qq - q*q; determinant > 0 { // integers, so the determinant is exact
			slope := (float64(n*sumXQ) - float64(q*sumX)) / determinant
			if level := (sumX - float64(slope*q)) / n; level < 0 {
				a, b = slope, level
			}
		}
		if !(a > 0) {
			continue
		}
		off := 0.0
		for _, v := range x {
			// The integers are chosen again, as the block will store them.
			e := float64(v) - (b + float64(a*float64(nearest((float64(v)-b)/a, 0, top))))
			off += float64(e * e)
		}
		if off < best {
			scale, offset, best = a, b, off
		}
	}
	return scale, offset
}
