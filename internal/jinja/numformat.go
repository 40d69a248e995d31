package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A numberSpec is what a format says of a number: that of % and that of
// str.format alike.
type numberSpec struct {
	verb      byte // 0, or one of b c d o x X e E f F g G n %
	sign      byte // '+', ' ' or '-'
	alternate bool
	grouping  byte // ',' or '_' or 0
	precision int  // -1 when none is given
}

// signed returns the sign to write before a number.
func (spec numberSpec) signed(negative bool) string {
	switch {
	case negative:
		return "-"
	case spec.sign == '+' || spec.sign == ' ':
		return string(spec.sign)
	}
	return ""
}

// formatInt returns the sign with the prefix, and the digits of n.
func (in *interp) formatInt(spec numberSpec, n Int) (prefix, digits string, err error) {
	base, group := 10, 3
	switch spec.verb {
	case 'b':
		base, prefix, group = 2, "0b", 4
	case 'o':
		base, prefix, group = 8, "0o", 4
	case 'x', 'X':
		base, prefix, group = 16, "0"+string(spec.verb), 4
	}
	if !spec.alternate {
		prefix = ""
	}
	if base == 10 {
		s, err := in.intText(n)
		if err != nil {
			return "", "", err
		}
		digits = strings.TrimPrefix(s, "-")
	} else {
		in.grow(n.bits())
		digits = new(big.Int).Abs(n.bigValue()).Text(base)
	}
	if spec.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	return spec.signed(n.sign() < 0) + prefix, groupDigits(digits, spec.grouping, group), nil
}

// groupDigits puts a separator between groups of digits, from the right.
func groupDigits(digits string, sep byte, size int) string {
	if sep == 0 || len(digits) <= size {
		return digits
	}
	var b strings.Builder
	first := len(digits) % size
	b.WriteString(digits[:first])
	for i := first; i < len(digits); i += size {
		if i > 0 {
			b.WriteByte(sep)
		}
		b.WriteString(digits[i : i+size])
	}
	return b.String()
}

// formatFloat returns the sign and the digits of f for one of the verbs e, f,
// g, their capitals, and %.
func (in *interp) formatFloat(spec numberSpec, f float64) (sign, digits string) {
	verb, precision := spec.verb, spec.precision
	if verb == 'n' {
		verb = 'g'
	}
	if precision < 0 {
		precision = 6
	}
	in.grow(precision)
	in.chargeDecimal(f)
	sign = spec.signed(math.Signbit(f) && !math.IsNaN(f))
	f = math.Abs(f)
	suffix := ""
	if verb == '%' {
		f, verb, suffix = f*100, 'f', "%"
	}
	lower := verb | 0x20
	switch {
	case math.IsInf(f, 0):
		digits = "inf"
	case math.IsNaN(f):
		digits = "nan"
	case lower == 'g':
		digits = general(f, max(precision, 1), spec.alternate)
	default:
		digits = strconv.FormatFloat(f, lower, precision, 64)
		if spec.alternate && precision == 0 {
			digits = withPoint(digits)
		}
	}
	if verb != lower {
		digits = strings.ToUpper(digits)
	}
	return sign, groupFloat(digits, spec.grouping) + suffix
}

// general is the verb g: precision significant digits, without the zeros at
// the end unless they are asked for.
func general(f float64, precision int, keepZeros bool) string {
	e := strconv.FormatFloat(f, 'e', precision-1, 64)
	at := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[at+1:])
	mantissa, tail := e[:at], e[at:]
	if exp >= -4 && exp < precision {
		mantissa, tail = strconv.FormatFloat(f, 'f', precision-1-exp, 64), ""
	}
	switch {
	case keepZeros:
		mantissa = withPoint(mantissa)
	case strings.Contains(mantissa, "."):
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + tail
}

// withPoint adds the decimal point to a number without one.
func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	if at := strings.IndexByte(digits, 'e'); at >= 0 {
		return digits[:at] + "." + digits[at:]
	}
	return digits + "."
}

func groupFloat(digits string, sep byte) string {
	if sep == 0 {
		return digits
	}
	whole := len(digits)
	for i := range len(digits) {
		if !isDigitByte(digits[i]) {
			whole = i
			break
		}
	}
	return groupDigits(digits[:whole], sep, 3) + digits[whole:]
}
