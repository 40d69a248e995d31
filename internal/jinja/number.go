package jinja

import (
	"math"
	"math/big"
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
func (in *interp) asFloat(v Value) (float64, bool, error) {
	if f, ok := v.(Float); ok {
		return f.f, true, nil
	}
	n, ok := asInt(v)
	if !ok {
		return 0, false, nil
	}
	f, err := in.float(n)
	return f, true, err
}

// chargeBig charges the multiplication or division of integers of so many
// bits, which math/big does word by word.
func (in *interp) chargeBig(a, b int) {
	const word = 64
	a, b = a/word+1, b/word+1
	in.step(8 + (a+b)/4 + a*b/16)
}

func (in *interp) float(n Int) (float64, error) {
	if n.big == nil {
		return float64(n.small), nil
	}
	in.chargeBig(n.bits(), 0)
	f, _ := new(big.Float).SetInt(n.big).Float64()
	if math.IsInf(f, 0) {
		return 0, raise(classOverflow, "int too large to convert to float")
	}
	return f, nil
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
func (in *interp) arithmetic(op string, a, b Value) (Value, bool, error) {
	tmpl := numberOrigin(a) && numberOrigin(b)
	x, okX := asInt(a)
	y, okY := asInt(b)
	if okX && okY {
		v, err := in.intArithmetic(op, x, y, tmpl)
		return v, true, err
	}
	f, okF, errF := in.asFloat(a)
	g, okG, errG := in.asFloat(b)
	if !okF || !okG {
		return nil, false, nil
	}
	if errF != nil {
		return nil, true, errF
	}
	if errG != nil {
		return nil, true, errG
	}
	r, err := in.floatArithmetic(op, f, g)
	return Float{r, tmpl}, true, err
}

func (in *interp) intArithmetic(op string, x, y Int, tmpl bool) (Value, error) {
	if x.big == nil && y.big == nil {
		if r, ok := smallArithmetic(op, x.small, y.small); ok {
			return Int{small: r, tmpl: tmpl}, nil
		}
	}
	if y.sign() == 0 && (op == "/" || op == "//" || op == "%") {
		return nil, divisionByZero(op)
	}
	a, b := x.bigValue(), y.bigValue()
	in.chargeBig(a.BitLen(), b.BitLen())
	r := new(big.Int)
	switch op {
	case "+":
		r.Add(a, b)
	case "-":
		r.Sub(a, b)
	case "*":
		if a.BitLen()+b.BitLen() > maxIntBits+1 {
			panic(&LimitError{"integer bits", maxIntBits})
		}
		r.Mul(a, b)
	case "//":
		floorDivMod(r, new(big.Int), a, b)
	case "%":
		floorDivMod(new(big.Int), r, a, b)
	case "/":
		const exact = 1 << 53
		if x.big == nil && y.big == nil && max(x.small, -x.small) < exact && max(y.small, -y.small) < exact {
			return Float{float64(x.small) / float64(y.small), tmpl}, nil
		}
		for range 16 { // the greatest common divisor takes longer than a product
			in.chargeBig(a.BitLen(), b.BitLen())
		}
		q, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(q, 0) {
			return nil, raise(classOverflow, "integer division result too large for a float")
		}
		return Float{q, tmpl}, nil
	case "**":
		return in.intPower(a, b, tmpl)
	}
	if r.BitLen() > maxIntBits {
		panic(&LimitError{"integer bits", maxIntBits})
	}
	in.grow(r.BitLen() / 8)
	return bigInt(r, tmpl), nil
}

// smallArithmetic computes what fits 64 bits and needs no special case.
func smallArithmetic(op string, a, b int64) (int64, bool) {
	switch op {
	case "+":
		r := a + b
		return r, (r > a) == (b > 0)
	case "-":
		r := a - b
		return r, (r < a) == (b > 0)
	case "*":
		const half = 1 << 31
		if a > -half && a < half && b > -half && b < half {
			return a * b, true
		}
	case "//", "%":
		if b == 0 || b == -1 {
			return 0, false
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "%" {
			return m, true
		}
		return q, true
	}
	return 0, false
}

// floorDivMod sets q and m to the quotient rounded down and what is left,
// which has the sign of b.
func floorDivMod(q, m, a, b *big.Int) {
	q.QuoRem(a, b, m)
	if m.Sign() != 0 && m.Sign() != b.Sign() {
		q.Sub(q, big.NewInt(1))
		m.Add(m, b)
	}
}

func (in *interp) intPower(a, b *big.Int, tmpl bool) (Value, error) {
	if b.Sign() < 0 {
		f, err := in.float(bigInt(a, tmpl))
		if err != nil {
			return nil, err
		}
		g, err := in.float(bigInt(b, tmpl))
		if err != nil {
			return nil, err
		}
		r, err := in.floatArithmetic("**", f, g)
		return Float{r, tmpl}, err
	}
	if a.IsInt64() && (a.Int64() >= -1 && a.Int64() <= 1) {
		r := a.Int64()
		if b.Sign() == 0 || r == -1 && b.Bit(0) == 0 {
			r = 1
		}
		return Int{small: r, tmpl: tmpl}, nil
	}
	if !b.IsInt64() || b.Int64() > maxIntBits || b.Int64()*int64(a.BitLen()-1) > maxIntBits {
		panic(&LimitError{"integer bits", maxIntBits})
	}
	bits := int(b.Int64()) * a.BitLen()
	in.grow(bits / 4)
	in.chargeBig(bits, bits)
	return bigInt(new(big.Int).Exp(a, b, nil), tmpl), nil
}

func divisionByZero(op string) error {
	if op == "/" {
		return raise(classZeroDiv, "division by zero")
	}
	return raise(classZeroDiv, "integer division or modulo by zero")
}

func (in *interp) floatArithmetic(op string, a, b float64) (float64, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/":
		if b == 0 {
			return 0, raise(classZeroDiv, "float division by zero")
		}
		return a / b, nil
	case "//", "%":
		if b == 0 {
			return 0, raise(classZeroDiv, "float floor division by zero")
		}
		// The remainder takes a subtraction for every binary digit of the
		// quotient.
		in.step(1 + max(0, math.Ilogb(a)-math.Ilogb(b))/2)
		q, m := floatDivMod(a, b)
		if op == "%" {
			return m, nil
		}
		return q, nil
	}
	in.step(64)
	return floatPower(a, b)
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

func floatPower(a, b float64) (float64, error) {
	if a == 0 && b < 0 {
		return 0, raise(classZeroDiv, "0.0 cannot be raised to a negative power")
	}
	if a < 0 && !math.IsInf(a, 0) && !math.IsInf(b, 0) && b != math.Trunc(b) {
		return 0, typeErrorf("a negative number to a fractional power is complex, which templates do not have")
	}
	r := power(a, b)
	if math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return 0, raise(classOverflow, "(34, 'Numerical result out of range')")
	}
	return r, nil
}

// power is a to the b, rounded correctly where b is a multiple of 1/2 of
// common size; math.Pow is a few units off there.
func power(a, b float64) float64 {
	const most = 1024
	twice := 2 * b
	if a == 0 || math.IsInf(a, 0) || math.IsNaN(a) || math.Abs(b) > most || twice != math.Trunc(twice) {
		return math.Pow(a, b)
	}
	base := new(big.Float).SetPrec(256).SetFloat64(a)
	r := new(big.Float).SetPrec(256).SetInt64(1)
	if int(twice)%2 != 0 {
		r.Sqrt(base)
	}
	for n := int(math.Abs(b)); n > 0; n >>= 1 {
		if n&1 != 0 {
			r.Mul(r, base)
		}
		base.Mul(base, base)
	}
	if b < 0 {
		r.Quo(new(big.Float).SetPrec(256).SetInt64(1), r)
	}
	f, _ := r.Float64()
	return f
}

// negate is the operator - on a number.
func (in *interp) negate(v Value) (Value, bool) {
	switch v := v.(type) {
	case Float:
		return Float{-v.f, v.tmpl}, true
	case Int, Bool:
		n, _ := asInt(v)
		if n.big == nil && n.small != math.MinInt64 {
			return Int{small: -n.small, tmpl: n.tmpl}, true
		}
		in.grow(n.bits() / 8)
		return bigInt(new(big.Int).Neg(n.bigValue()), n.tmpl), true
	}
	return nil, false
}

// parseInt is Python's int(text, base): white space around, a sign, a prefix
// where the base allows it, single underscores between digits.
func (in *interp) parseInt(text string, base int) (*big.Int, bool, error) {
	i, j := in.trimSpace(text)
	s := in.asciiDigits(text[i:j])
	neg := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' {
		prefixed := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]
		switch {
		case prefixed != 0 && (base == 0 || base == prefixed):
			base = prefixed
			s = strings.TrimPrefix(s[2:], "_")
		case base == 0 && strings.Trim(s, "0_") != "":
			return nil, false, nil
		}
	}
	if base == 0 {
		base = 10
	}
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || s[0] == '+' || s[0] == '-' {
		return nil, false, nil
	}
	digits := strings.ReplaceAll(s, "_", "")
	if base&(base-1) != 0 && len(digits) > maxIntDigits {
		return nil, false, valueErrorf("Exceeds the limit (%d digits) for integer string conversion: value has %d digits", maxIntDigits, len(digits))
	}
	if len(digits) > maxIntBits/4 {
		panic(&LimitError{"integer bits", maxIntBits})
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, false, nil
	}
	if neg {
		n.Neg(n)
	}
	return n, true, nil
}
