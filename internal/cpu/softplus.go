package cpu

// softplusOf sets y to log(1 + exp(x)), which is max(x, 0) + log(1 + exp(-|x|)). exponents is
// scratch memory of exponentStride values.
func softplusOf(f *attentionKernels, y, x, exponents []float32) {
	var top, total [1]float32
	for len(y) > 0 {
		n := min(exponentRow, len(y))
		e := exponents[:(n+headUnit-1)/headUnit*headUnit+headUnit]
		clear(e) // the last is 0, so that the kernel computes exp(x) for the others
		for i, v := range x[:n] {
			e[i] = -max(v, -v)
		}
		f.softWeights(e, len(e), 1, top[:], total[:])
		for i, v := range x[:n] {
			y[i] = max(v, 0) + logOnePlus(e[i])
		}
		x, y = x[n:], y[n:]
	}
}

// logOnePlus returns log(1+x) for 0 <= x <= 1, by the series of the inverse hyperbolic tangent of
// x/(2+x), whose terms fall by a factor of nine.
func logOnePlus(x float32) float32 {
	u := float64(x) / (2 + float64(x))
	q := u * u
	return float32(2 * u * (1 + q*(1./3+q*(1./5+q*(1./7+q*(1./9+q*(1./11+q*(1./13+q/15))))))))
}
