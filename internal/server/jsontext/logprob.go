package jsontext

import "strconv"

// leastLogProb stands for the logarithm of 0, which JSON cannot represent.
const leastLogProb = -9999

// FiniteLogProb returns a log-probability as a finite number.
func FiniteLogProb(p float64) float64 {
	switch {
	case !(p >= leastLogProb):
		return leastLogProb
	case p == 0:
		return 0 // not -0
	}
	return p
}

// AppendLogProb appends a log-probability.
func AppendLogProb(b []byte, p float64) []byte {
	return strconv.AppendFloat(b, FiniteLogProb(p), 'g', -1, 64)
}
