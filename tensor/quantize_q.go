package tensor

// Quantization to blocks of 32 with one scale, laid out as in dequantize_q.go.

// Q8_0's scale is the largest magnitude divided by 127.
func quantizeQ8_0(dst []byte, src []float32) {
	for len(src) > 0 {
		b, x := (*[34]byte)(dst), (*[32]float32)(src)
		dst, src = dst[34:], src[32:]
		top := float64(largestOf(x[:]))
		d := float64(putF16(b[:], max(top, -top)/127))
		for j, v := range x {
			b[2+j] = byte(nearest(quotient(v, d), -127, 127))
		}
	}
}

// Q4_0's scale is the fitted one, or the one that gives the largest magnitude the code farthest
// from zero, whichever has the smaller error.
func quantizeQ4_0(dst []byte, src []float32) {
	for len(src) > 0 {
		b, x := (*[18]byte)(dst), (*[32]float32)(src)
		dst, src = dst[18:], src[32:]
		whole := putF16(b[:], float64(largestOf(x[:]))/-8)
		d := putF16(b[:], fitScale(x[:], -8, 7))
		if squaresOff(x[:], whole, -8, 7) < squaresOff(x[:], d, -8, 7) {
			d = putF16(b[:], float64(whole))
		}
		for j := range 16 {
			low := nearest(quotient(x[j], float64(d)), -8, 7) + 8
			high := nearest(quotient(x[j+16], float64(d)), -8, 7) + 8
			b[2+j] = byte(low | high<<4)
		}
	}
}

// quotient returns v/d, or 0 if d is 0.
func quotient(v float32, d float64) float64 {
	if d == 0 {
		return 0
	}
	return float64(v) / d
}

// squaresOff returns the sum of the squared distances of x from the nearest products of d with
// integers from lo to hi.
func squaresOff(x []float32, d float32, lo, hi int) float64 {
	sum := 0.0
	for _, v := range x {
		e := float64(v) - float64(d*float32(nearest(quotient(v, float64(d)), lo, hi)))
		sum += float64(e * e)
	}
	return sum
}
