package jinja

import (
	"fmt"
	"math"
	"strconv"
)

func filterAbs(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	if f, ok := v.(Float); ok {
		return Float{math.Abs(f.f), f.tmpl}, nil
	}
	n, ok := asInt(v)
	if !ok {
		return nil, typeErrorf("bad operand type for abs(): '%s'", v.typeName())
	}
	if n.sign() < 0 {
		r, _ := in.negate(n)
		return r, nil
	}
	return n, nil
}

// toFloat is Python's float(v).
func (in *interp) toFloat(v Value) (float64, error) {
	if u, ok := v.(*undefined); ok {
		return 0, in.failUndefined(u)
	}
	if s, ok := v.(*Str); ok {
		f, ok := in.parseFloat(s.s)
		if !ok {
			in.step(stepsPerError)
			return 0, valueErrorf("could not convert string to float: %s", in.reprText(s))
		}
		return f, nil
	}
	f, ok, err := in.asFloat(v)
	if err == nil && !ok {
		in.step(stepsPerError)
		err = typeErrorf("float() argument must be a string or a real number, not '%s'", v.typeName())
	}
	return f, err
}

func filterFloat(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("default?")
	if err != nil {
		return nil, err
	}
	f, err := in.toFloat(v)
	switch {
	case err == nil:
		return Float{f, numberOrigin(v)}, nil
	case !isClass(err, classType, classValue):
		return nil, err
	case args[0] == nil:
		return Float{0, true}, nil
	}
	return args[0], nil
}

// toInt is Python's int(v), or int(v, base) for a string.
func (in *interp) toInt(v Value, base int) (Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, in.failUndefined(x)
	case Float:
		return truncate(x.f, x.tmpl)
	case *Str:
		if base < 0 || base == 1 || base > 36 {
			return nil, valueErrorf("int() base must be >= 2 and <= 36, or 0")
		}
		n, ok, err := in.parseInt(x.s, base)
		if err != nil {
			return nil, err
		}
		if !ok {
			in.step(stepsPerError)
			return nil, valueErrorf("invalid literal for int() with base %d: %s", base, in.reprText(x))
		}
		return bigInt(n, x.trusted()), nil
	}
	n, ok := asInt(v)
	if !ok {
		return nil, typeErrorf("int() argument must be a string, a bytes-like object or a real number, not '%s'", v.typeName())
	}
	return n, nil
}

func filterInt(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("default?", "base?")
	if err != nil {
		return nil, err
	}
	base, err := a.argInt(args[1], 10)
	if err != nil {
		return nil, err
	}
	n, err := in.toInt(v, base)
	if err == nil || !isClass(err, classType, classValue) {
		return n, err
	}
	// So that "42.23" gives 42.
	f, err := in.toFloat(v)
	if err == nil {
		n, err = truncate(f, isTrusted(v))
	}
	switch {
	case err == nil:
		return n, nil
	case !isClass(err, classType, classValue, classOverflow):
		return nil, err
	case args[0] == nil:
		return templateInt(0), nil
	}
	return args[0], nil
}

func isTrusted(v Value) bool {
	s, ok := v.(*Str)
	return ok && s.trusted() || numberOrigin(v)
}

func filterRound(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("precision?", "method?")
	if err != nil {
		return nil, err
	}
	method := "common"
	if s, ok := args[1].(*Str); ok {
		method = s.s
	}
	if _, ok := args[1].(*Str); args[1] != nil && !ok || method != "common" && method != "ceil" && method != "floor" {
		return nil, raise(classFilterArg, "method must be common, ceil or floor")
	}
	var precision Value = templateInt(0)
	if args[0] != nil {
		precision = args[0]
	}
	if u, ok := v.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	if method == "common" {
		return in.round(v, precision)
	}
	scale, err := in.binary("**", templateInt(10), precision)
	if err != nil {
		return nil, err
	}
	scaled, err := in.binary("*", v, scale)
	if err != nil {
		return nil, err
	}
	var whole Value
	if f, ok := scaled.(Float); ok {
		r := math.Floor(f.f)
		if method == "ceil" {
			r = math.Ceil(f.f)
		}
		if whole, err = truncate(r, f.tmpl); err != nil {
			return nil, err
		}
	} else if n, ok := asInt(scaled); ok {
		whole = n
	} else {
		return nil, typeErrorf("must be real number, not %s", scaled.typeName())
	}
	return in.binary("/", whole, scale)
}

// round is Python's round(v, precision).
func (in *interp) round(v, precision Value) (Value, error) {
	p, ok := asInt(precision)
	if !ok && precision != None {
		return nil, typeErrorf("'%s' object cannot be interpreted as an integer", precision.typeName())
	}
	if f, isFloat := v.(Float); isFloat {
		r, err := in.roundFloat(f.f, p.clamp())
		if err != nil || ok {
			return Float{r, f.tmpl}, err
		}
		return truncate(r, f.tmpl)
	}
	n, isInt := asInt(v)
	if !isInt {
		return nil, typeErrorf("type %s doesn't define __round__ method", v.typeName())
	}
	return in.roundInt(n, p.clamp()), nil
}

func filterFilesizeformat(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("binary?")
	if err != nil {
		return nil, err
	}
	size, err := in.toFloat(v)
	if err != nil {
		return nil, err
	}
	in.chargeDecimal(size)
	base, tail := 1000.0, "B"
	prefixes := "kMGTPEZY"
	if argBool(args[0]) {
		base, tail, prefixes = 1024, "iB", "KMGTPEZY"
	}
	text := ""
	switch {
	case size == 1:
		text = "1 Byte"
	case size < base:
		whole, err := truncate(size, false)
		if err != nil {
			return nil, err
		}
		digits, err := in.intText(whole.(Int))
		if err != nil {
			return nil, err
		}
		text = digits + " Bytes"
	default:
		i, unit := 0, base*base
		for i < len(prefixes)-1 && !(size < unit) {
			i++
			unit *= base
		}
		// Divided as the original does, so that it rounds alike.
		text = fmt.Sprintf("%s %c%s", formatOneDigit(base*size/unit), prefixes[i], tail)
	}
	return &Str{s: text, tmpl: isTrusted(v)}, nil
}

func formatOneDigit(f float64) string {
	switch {
	case math.IsInf(f, 0):
		return "inf"
	case math.IsNaN(f):
		return "nan"
	}
	return strconv.FormatFloat(f, 'f', 1, 64)
}
