package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// strFormat is str.format with fields such as {}, {0}, {name} and {x:>8,.2f}:
// arguments by number or name, and a specification of fill, alignment, sign,
// width, thousands, precision and one of the types s, d, f and %.
func strFormat(in *interp, recv Value, a *callArgs) Value {
	format := recv.(*Str)
	in.step(len(format.s))
	b := in.builder()
	next := 0
	for i, s := 0, format.s; i < len(s); {
		at := strings.IndexAny(s[i:], "{}")
		if at < 0 {
			at = len(s) - i
		}
		b.slice(format, i, i+at)
		if i += at; i == len(s) {
			break
		}
		if strings.HasPrefix(s[i+1:], s[i:i+1]) {
			b.slice(format, i, i+1)
			i += 2
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end <= 0 {
			panic(valueErrorf("Single '%c' encountered in format string", s[i]))
		}
		name, spec, _ := strings.Cut(s[i+1:i+end], ":")
		v := in.formatArgument(name, &next, a)
		text := in.formatValue(v, spec)
		b.str(text)
		i += end + 1
	}
	return b.done()
}

// formatArgument finds the argument of a field by its name or its number; one
// without either takes the next.
func (in *interp) formatArgument(name string, next *int, a *callArgs) Value {
	n, err := strconv.Atoi(name)
	switch {
	case strings.ContainsAny(name, ".[!{"):
		panic(valueErrorf("the field {%s} of format(): only names and numbers of arguments are known", clip(name)))
	case name == "" && *next >= 0:
		n = *next
		*next++
	case name == "" || err == nil && *next > 0:
		panic(valueErrorf("format() takes fields that are numbered, or fields that are not, and no mixture"))
	case err == nil:
		*next = -1
	default:
		if a.kw != nil {
			if v, ok := a.kw.Get(name); ok {
				return v
			}
		}
		panic(raise(classKey, "'%s'", clip(name)))
	}
	if n < 0 || n >= len(a.args) {
		panic(raise(classIndex, "Replacement index %d out of range for positional args tuple", n))
	}
	return a.args[n]
}

// A fieldSpec is what a field says of its text.
type fieldSpec struct {
	fill      string
	align     byte // '0' for zeros behind the sign of a number
	sign      byte
	width     int
	thousands bool
	precision int  // -1 when none is given
	verb      byte // 0, or one of s d f %
}

func parseFieldSpec(text string) (spec fieldSpec, ok bool) {
	spec = fieldSpec{fill: " ", precision: -1}
	s := text
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	number := func() int {
		digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
		s = s[len(digits):]
		n, err := strconv.Atoi(digits)
		if err != nil {
			return -1
		}
		return min(n, 1<<31)
	}
	if _, n := utf8.DecodeRuneInString(s); n < len(s) && strings.IndexByte("<>=^", s[n]) >= 0 {
		spec.fill, s = s[:n], s[n:]
	}
	spec.align = take("<>=^")
	spec.sign = take("+- ")
	if take("0") != 0 && spec.fill == " " {
		spec.fill = "0"
		if spec.align == 0 {
			spec.align = '0'
		}
	}
	spec.width = number()
	spec.thousands = take(",") != 0
	if take(".") != 0 {
		if spec.precision = number(); spec.precision < 0 {
			return spec, false
		}
	}
	spec.verb = take("sdf%")
	return spec, s == ""
}

// formatValue is Python's format(v, spec).
func (in *interp) formatValue(v Value, text string) *Str {
	if text == "" {
		return in.str(v)
	}
	spec, ok := parseFieldSpec(text)
	if !ok {
		panic(valueErrorf("the format '%s' is not known: it is [[fill]align][sign][0][width][,][.precision][s, d, f or %%]", clip(text)))
	}
	if s, ok := v.(*Str); ok && (spec.verb == 0 || spec.verb == 's') {
		if spec.precision >= 0 && spec.precision < len(s.s) {
			s = s.slice(0, in.runeOffset(s.s, spec.precision))
		}
		return in.justify(spec, emptyStr, s)
	}
	in.grow(max(0, spec.precision))
	n, isInt := asInt(v)
	f, isNumber := asFloat(v)
	isInt = isInt && n.wide == "" && spec.precision < 0
	var digits string
	switch spec.verb {
	case 0:
		if isInt {
			digits = strconv.FormatInt(n.small, 10)
		} else if isNumber && spec.precision < 0 {
			digits = floatText(f)
		}
	case 'd':
		if isInt {
			digits = strconv.FormatInt(n.small, 10)
		}
	case 'f', '%':
		if !isNumber || math.IsInf(f, 0) || math.IsNaN(f) {
			break
		}
		in.chargeDecimal(f)
		if spec.precision < 0 {
			spec.precision = 6
		}
		if spec.verb == 'f' {
			digits = strconv.FormatFloat(f, 'f', spec.precision, 64)
		} else {
			digits = strconv.FormatFloat(f*100, 'f', spec.precision, 64) + "%"
		}
	}
	if digits == "" {
		panic(valueErrorf("the format '%s' is not for a value of type '%s'", clip(text), v.typeName()))
	}
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	} else if spec.sign == '+' || spec.sign == ' ' {
		sign = string(spec.sign)
	}
	if spec.thousands {
		digits = groupThousands(digits)
	}
	switch spec.align {
	case 0:
		spec.align = '>'
	case '0':
		spec.align = '='
	}
	return in.justify(spec, &Str{s: sign, tmpl: numberOrigin(v)}, &Str{s: digits, tmpl: numberOrigin(v)})
}

func groupThousands(digits string) string {
	whole := len(digits) - len(strings.TrimLeft(digits, "0123456789"))
	for i := whole - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// justify fills sign and text to the width of spec. What is filled in counts
// as the caller's: nobody wrote it.
func (in *interp) justify(spec fieldSpec, sign, text *Str) *Str {
	more := max(0, spec.width-in.runeCount(sign.s)-in.runeCount(text.s))
	left := 0
	switch spec.align {
	case '>', '=':
		left = more
	case '^':
		left = more / 2
	}
	b := in.builder()
	if spec.align == '=' {
		b.str(sign)
		sign = emptyStr
	}
	b.repeat(spec.fill, left, false)
	b.str(sign)
	b.str(text)
	b.repeat(spec.fill, more-left, false)
	return b.done()
}
