package jinja

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// asInt returns the value of an int or a bool.
func asInt(v Value) (Int, bool) {
	switch v := v.(type) {
	case Int:
		return v, true
	case Bool:
		if v {
			return Int{small: 1}, true
		}
		return Int{}, true
	}
	return Int{}, false
}

// asFloat returns the value of any number as a double.
func asFloat(v Value) (float64, bool) {
	if f, ok := v.(Float); ok {
		return f.f, true
	}
	n, ok := asInt(v)
	if n.wide != "" {
		f, _ := strconv.ParseFloat(n.wide, 64)
		return f, true
	}
	return float64(n.small), ok
}

// numberOrigin reports whether a number was computed by the template alone.
func numberOrigin(v Value) bool {
	switch v := v.(type) {
	case Int:
		return v.tmpl
	case Float:
		return v.tmpl
	}
	return false
}

// arithmetic is a binary operator on two numbers. The last result is false
// when one of the operands is no number.
func (in *interp) arithmetic(op string, a, b Value) (Value, bool) {
	tmpl := numberOrigin(a) && numberOrigin(b)
	x, okX := asInt(a)
	y, okY := asInt(b)
	if okX && okY {
		return in.intArithmetic(op, x, y, tmpl), true
	}
	f, okF := asFloat(a)
	g, okG := asFloat(b)
	if !okF || !okG {
		return nil, false
	}
	return Float{in.floatArithmetic(op, f, g), tmpl}, true
}

func errOverflow() error {
	return raise(classOverflow, "integers are computed with 64 bits, and this one takes more")
}

func (in *interp) intArithmetic(op string, x, y Int, tmpl bool) Value {
	if x.wide != "" || y.wide != "" {
		panic(errOverflow())
	}
	a, b := x.small, y.small
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		panic(divisionByZero(op))
	}
	if op == "/" || op == "**" && b < 0 {
		return Float{in.floatArithmetic(op, float64(a), float64(b)), tmpl}
	}
	r, ok := int64(0), true
	switch op {
	case "+":
		r = a + b
		ok = (r > a) == (b > 0)
	case "-":
		r = a - b
		ok = (r < a) == (b > 0)
	case "*":
		r, ok = product(a, b)
	case "//", "%":
		if a == math.MinInt64 && b == -1 {
			panic(errOverflow())
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if r = q; op == "%" {
			r = m
		}
	default:
		r, ok = intPower(a, b)
	}
	if !ok {
		panic(errOverflow())
	}
	return Int{small: r, tmpl: tmpl}
}

// product is a*b, false where it takes more than 64 bits.
func product(a, b int64) (int64, bool) {
	r := a * b
	return r, a == 0 || r/a == b && (a != -1 || b != math.MinInt64)
}

// intPower is a to the b, which is not negative.
func intPower(a, b int64) (int64, bool) {
	r, ok := int64(1), true
	for ; b > 0 && ok; b >>= 1 {
		if b&1 != 0 {
			if r, ok = product(r, a); !ok {
				break
			}
		}
		if b > 1 {
			a, ok = product(a, a)
		}
	}
	return r, ok
}

func divisionByZero(op string) error {
	if op == "/" {
		return raise(classZeroDiv, "division by zero")
	}
	return raise(classZeroDiv, "integer division or modulo by zero")
}

func (in *interp) floatArithmetic(op string, a, b float64) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		if b == 0 {
			panic(raise(classZeroDiv, "float division by zero"))
		}
		return a / b
	case "//", "%":
		if b == 0 {
			panic(raise(classZeroDiv, "float floor division by zero"))
		}
		// The remainder takes a subtraction for every binary digit of the
		// quotient.
		in.step(1 + max(0, math.Ilogb(a)-math.Ilogb(b))/2)
		q, m := floatDivMod(a, b)
		if op == "%" {
			return m
		}
		return q
	}
	in.step(64)
	if a == 0 && b < 0 {
		panic(raise(classZeroDiv, "0.0 cannot be raised to a negative power"))
	}
	r := math.Pow(a, b)
	switch {
	case math.IsNaN(r) && !math.IsNaN(a) && !math.IsNaN(b):
		panic(typeErrorf("a negative number to a fractional power is complex, which templates do not have"))
	case math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0):
		panic(raise(classOverflow, "(34, 'Numerical result out of range')"))
	}
	return r
}

// floatDivMod follows CPython: the remainder is exact and has the sign of b.
func floatDivMod(a, b float64) (q, m float64) {
	m = math.Mod(a, b)
	div := (a - m) / b
	if m != 0 {
		if (b < 0) != (m < 0) {
			m += b
			div--
		}
	} else {
		m = math.Copysign(0, b)
	}
	if div == 0 {
		return math.Copysign(0, a/b), m
	}
	q = math.Floor(div)
	if div-q > 0.5 {
		q++
	}
	return q, m
}

// negate is the operator - on a number.
func negate(v Value) Value {
	if f, ok := v.(Float); ok {
		return Float{-f.f, f.tmpl}
	}
	n, ok := asInt(v)
	switch {
	case !ok:
		panic(typeErrorf("bad operand type for unary -: '%s'", v.typeName()))
	case n.wide != "" || n.small == math.MinInt64:
		panic(errOverflow())
	}
	return Int{small: -n.small, tmpl: n.tmpl}
}

// parseInt is Python's int(text): white space around, a sign, digits.
func (in *interp) parseInt(text *Str) (Value, error) {
	i, j := in.trimSpace(text.s)
	in.step(j - i)
	n, err := strconv.ParseInt(text.s[i:j], 10, 64)
	switch {
	case err == nil:
		return Int{small: n, tmpl: text.trusted()}, nil
	case errors.Is(err, strconv.ErrRange):
		return nil, errOverflow()
	}
	in.step(stepsPerError)
	return nil, valueErrorf("invalid literal for int() with base 10: %s", in.reprText(text))
}

// parseFloat is Python's float(text).
func (in *interp) parseFloat(text string) (float64, bool) {
	i, j := in.trimSpace(text)
	in.step(j - i)
	s := strings.ToLower(text[i:j])
	unsigned := strings.TrimLeft(s, "+-")
	if len(s)-len(unsigned) > 1 || strings.Contains(s, "x") || strings.Contains(s, "p") || strings.Contains(s, "_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

func isDigitByte(c byte) bool { return c >= '0' && c <= '9' }

// truncate is Python's int(f).
func truncate(f float64, tmpl bool) (Value, error) {
	switch {
	case math.Abs(f) < 1<<62:
		return Int{small: int64(f), tmpl: tmpl}, nil
	case math.IsNaN(f):
		return nil, valueErrorf("cannot convert float NaN to integer")
	case math.IsInf(f, 0):
		return nil, raise(classOverflow, "cannot convert float infinity to integer")
	}
	return nil, errOverflow()
}

// chargeDecimal charges the conversion of f to decimal digits where the
// shortest ones will not do: it works on all of them.
func (in *interp) chargeDecimal(f float64) {
	_, e := math.Frexp(f)
	in.step(16 + max(e, -e)/2)
}
