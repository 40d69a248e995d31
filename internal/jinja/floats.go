package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// asciiDigits turns the decimal digits of other scripts into 0 to 9, as
// Python reads them in numbers.
func (in *interp) asciiDigits(s string) string {
	in.step(len(s))
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		in.step(2)
		if d, ok := decimalDigit(r); ok {
			return '0' + rune(d)
		}
		return r
	}, s)
}

// decimalDigit returns the value of a decimal digit of any script. The ranges
// of category Nd hold whole sets of ten, in order.
func decimalDigit(r rune) (int, bool) {
	if r >= '0' && r <= '9' {
		return int(r - '0'), true
	}
	if r < 0x80 || !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	for _, rg := range unicode.Nd.R16 {
		if r >= rune(rg.Lo) && r <= rune(rg.Hi) {
			return int(r-rune(rg.Lo)) % 10, true
		}
	}
	for _, rg := range unicode.Nd.R32 {
		if r >= rune(rg.Lo) && r <= rune(rg.Hi) {
			return int(r-rune(rg.Lo)) % 10, true
		}
	}
	return 0, false
}

// parseFloat is Python's float(text).
func (in *interp) parseFloat(text string) (float64, bool) {
	i, j := in.trimSpace(text)
	s := strings.ToLower(in.asciiDigits(text[i:j]))
	unsigned := strings.TrimLeft(s, "+-")
	if len(s)-len(unsigned) > 1 {
		return 0, false
	}
	switch unsigned {
	case "inf", "infinity", "nan":
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil
	}
	for k := range len(s) {
		switch c := s[k]; {
		case c >= '0' && c <= '9' || c == '.' || c == 'e' || c == '+' || c == '-':
		case c == '_' && k > 0 && k < len(s)-1 && isDigitByte(s[k-1]) && isDigitByte(s[k+1]):
		default:
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func isDigitByte(c byte) bool { return c >= '0' && c <= '9' }

// truncate is Python's int(f).
func truncate(f float64, tmpl bool) (Value, error) {
	switch {
	case math.Abs(f) < 1<<62:
		return Int{small: int64(f), tmpl: tmpl}, nil
	case math.IsInf(f, 0):
		return nil, raise(classOverflow, "cannot convert float infinity to integer")
	case math.IsNaN(f):
		return nil, valueErrorf("cannot convert float NaN to integer")
	}
	b, _ := big.NewFloat(math.Trunc(f)).Int(nil)
	return bigInt(b, tmpl), nil
}

// roundFloat is Python's round(f, digits): the nearest decimal of the exact
// value of f, halves to the even digit.
func (in *interp) roundFloat(f float64, digits int) (float64, error) {
	in.chargeDecimal(f)
	switch {
	case f == 0 || math.IsInf(f, 0) || math.IsNaN(f) || digits > 323:
		return f, nil
	case digits < -308:
		return math.Copysign(0, f), nil
	}
	var r float64
	if digits >= 0 {
		r, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	} else {
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
		exact := new(big.Rat).SetFloat64(f)
		n := roundQuotient(exact.Num(), new(big.Int).Mul(exact.Denom(), scale))
		r, _ = new(big.Float).SetInt(n.Mul(n, scale)).Float64()
		r = math.Copysign(r, f)
	}
	if math.IsInf(r, 0) {
		return 0, raise(classOverflow, "rounded value too large to represent")
	}
	return r, nil
}

// roundInt is Python's round(n, digits) for an integer.
func (in *interp) roundInt(n Int, digits int) Int {
	if digits >= 0 {
		return n
	}
	b := n.bigValue()
	// 10^d has more than 3.3 d digits in binary.
	if -digits > b.BitLen()/3+1 {
		return Int{tmpl: n.tmpl}
	}
	in.grow(b.BitLen())
	in.chargeBig(b.BitLen(), 2*b.BitLen())
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	q := roundQuotient(b, scale)
	return bigInt(q.Mul(q, scale), n.tmpl)
}

// roundQuotient is a/b rounded to the nearest integer, halves to the even one;
// b is positive.
func roundQuotient(a, b *big.Int) *big.Int {
	q, m := new(big.Int), new(big.Int)
	floorDivMod(q, m, a, b)
	if c := m.Lsh(m, 1).Cmp(b); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// chargeDecimal charges the conversion of f to decimal digits where the
// shortest ones will not do: it works on all of them.
func (in *interp) chargeDecimal(f float64) {
	_, e := math.Frexp(f)
	in.step(16 + max(e, -e)/2)
}
