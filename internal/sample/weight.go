package sample

import (
	"math"
	"math/bits"
)

// A scale turns logits into integer weights as defined in the package comment.
type scale struct {
	best        float64 // the largest allowed logit
	temperature float64
	shift       int // S: the weight of the largest logit is 2^S
}

func newScale(best, temperature float32, vocab int) scale {
	return scale{float64(best), float64(temperature), weightShift(vocab)}
}

// weightShift returns S for a vocabulary of vocab tokens: the largest for which
// the sum of vocab weights stays below 2^63.
func weightShift(vocab int) int {
	return 63 - bits.Len(uint(vocab))
}

// weight returns floor(2^S * e((logit-best)/temperature)) for a logit not above best.
//
// The exponential consists of single IEEE operations on float64 in a fixed order, because math.Exp
// differs between machines. A conversion to float64 around a product keeps the compiler from fusing
// it with the following addition.
func (s scale) weight(logit float32) uint64 {
	const (
		log2E = 1.44269504088896338700
		// ln 2 in two parts; k times the first is exact for |k| < 2^20.
		ln2Hi = 0x1.62e42feep-01
		ln2Lo = 0x1.a39ef35793c76p-33
	)
	x := (float64(logit) - s.best) / s.temperature
	y := float64(x * log2E)
	if y < float64(-s.shift-1) {
		return 0 // the weight is below 1/2, so its floor is 0
	}
	// e^x = 2^k * e^r with |r| <= ln(2)/2 plus a rounding error. x is not positive, so truncating
	// y-1/2 rounds y to the nearest integer.
	k := int(y - 0.5)
	r := x - float64(float64(k)*ln2Hi)
	r -= float64(float64(k) * ln2Lo)
	// Taylor's series to r^12: the rest is below 2e-16. The even and odd powers are two chains of
	// operations that a processor can run in parallel.
	q := float64(r * r)
	even := float64(q*(1.0/479001600)) + 1.0/3628800
	even = float64(even*q) + 1.0/40320
	even = float64(even*q) + 1.0/720
	even = float64(even*q) + 1.0/24
	even = float64(even*q) + 0.5
	even = float64(even*q) + 1
	odd := float64(q*(1.0/39916800)) + 1.0/362880
	odd = float64(odd*q) + 1.0/5040
	odd = float64(odd*q) + 1.0/120
	odd = float64(odd*q) + 1.0/6
	odd = float64(odd*q) + 1
	e := even + float64(r*odd)
	power := math.Float64frombits(uint64(1023+k+s.shift) << 52) // 2^(k+S)
	return uint64(int64(e * power))
}

// ceilProduct returns the ceiling of f*n, exactly, for f in (0, 1] and n below 2^63. It is at least
// 1 if n is.
func ceilProduct(f float32, n uint64) uint64 {
	fraction, exponent := math.Frexp(float64(f))
	// f = significand / 2^places; a float32's significand has 24 bits.
	significand, places := uint64(fraction*(1<<24)), 24-exponent
	hi, lo := bits.Mul64(significand, n)
	var quotient, rest uint64
	if places < 64 {
		quotient, rest = hi<<(64-places)|lo>>places, lo&(1<<places-1)
	} else {
		quotient, rest = hi>>(places-64), lo|hi&(1<<(places-64)-1)
	}
	if rest != 0 {
		quotient++
	}
	return quotient
}
