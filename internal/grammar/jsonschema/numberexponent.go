package jsonschema

import (
	"cmp"
	"strings"
)

// exponent reads one byte of the exponent.
func (m *numberMachine) exponent(s numberState, b byte) (numberState, bool) {
	switch {
	case b == 'e' || b == 'E':
		if !m.powers || !s.single || s.phase != numberWhole && s.phase != numberFraction {
			return s, false
		}
		return numberState{
			phase: numberE, negative: s.negative, nonzero: true,
			minDigits: endDigits(&m.min, s, s.minDigits), maxDigits: endDigits(&m.max, s, s.maxDigits),
		}, true
	case b == '+' || b == '-':
		if s.phase != numberE {
			return s, false
		}
		s.phase, s.powerNegative = numberSign, b == '-'
		return s, true
	case b < '0' || b > '9' || s.powerDigits == exponentDigits:
		return s, false
	}
	s.phase = numberPower
	s.power = s.power*10 + int16(b-'0')
	s.powerDigits++
	return s, true
}

// endDigits returns the order of a number's complete digits relative to those of a bound.
func endDigits(b *bound, s numberState, so int8) int8 {
	read := 1
	if s.phase == numberFraction {
		read += int(s.digits)
	}
	if so == 0 && read < len(b.digits) && strings.Trim(b.digits[read:], "0") != "" {
		return -1
	}
	return so
}

// digitOrder compares digit i with that of a bound. so is the order of the digits before it.
func digitOrder(digits string, i int, so int8, b byte) int8 {
	if so != 0 {
		return so
	}
	have := byte('0')
	if i < len(digits) {
		have = digits[i]
	}
	return int8(cmp.Compare(b, have))
}
