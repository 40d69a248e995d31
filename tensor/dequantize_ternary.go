package tensor

// Formats of three values, -d, 0 and d, in blocks of 256 with one scale.

// trit returns digit n of a byte of TQ1_0, which holds five digits: q/256 is a fraction in base 3
// whose first digit is that of the first value, so that multiplying by 3^n moves digit n before the
// point. power is 3^n.
func trit(q, power uint8) float32 { return float32(int(uint16(q*power)*3>>8) - 1) }

var powersOf3 = [5]uint8{1, 3, 9, 27, 81}

// TQ1_0 is digits [52], d f16: 32 bytes hold five runs of 32 values, 16 bytes five runs of 16, and
// 4 bytes four runs of 4. A run has the same digit of each byte.
func dequantizeTQ1_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[54]byte)(src), (*[256]float32)(dst)
		src, dst = src[54:], dst[256:]
		d := f16At(b[52:])
		for n, power := range powersOf3 {
			for j, q := range b[:32] {
				y[32*n+j] = d * trit(q, power)
			}
			for j, q := range b[32:48] {
				y[160+16*n+j] = d * trit(q, power)
			}
		}
		for n, power := range powersOf3[:4] {
			for j, q := range b[48:52] {
				y[240+4*n+j] = d * trit(q, power)
			}
		}
	}
}

// levelsTQ1_0 returns the levels of a digit of a random byte, which are the same for each digit.
func levelsTQ1_0() []float32 {
	all := make([]float32, 256)
	for q := range all {
		all[q] = trit(uint8(q), 1)
	}
	return all
}
