package jinja

import (
	"math"
	"strconv"
)

func filterAbs(_ *interp, v Value, a *callArgs) Value {
	a.positional(0, 0)
	if f, ok := v.(Float); ok {
		return Float{math.Abs(f.f), f.tmpl}
	}
	n, ok := asInt(v)
	if !ok {
		panic(typeErrorf("bad operand type for abs(): '%s'", v.typeName()))
	}
	if n.small < 0 {
		return negate(n)
	}
	return n
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
	f, ok := asFloat(v)
	if !ok {
		in.step(stepsPerError)
		return 0, typeErrorf("float() argument must be a string or a real number, not '%s'", v.typeName())
	}
	return f, nil
}

func filterFloat(in *interp, v Value, a *callArgs) Value {
	args := a.bind("default?")
	f, err := in.toFloat(v)
	switch {
	case err == nil:
		return Float{f, isTrusted(v)}
	case !isClass(err, classType, classValue):
		panic(err)
	case args[0] == nil:
		return Float{0, true}
	}
	return args[0]
}

// toInt is Python's int(v).
func (in *interp) toInt(v Value) (Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, in.failUndefined(x)
	case Float:
		return truncate(x.f, x.tmpl)
	case *Str:
		return in.parseInt(x)
	}
	n, ok := asInt(v)
	if !ok {
		in.step(stepsPerError)
		return nil, typeErrorf("int() argument must be a string, a bytes-like object or a real number, not '%s'", v.typeName())
	}
	return n, nil
}

func filterInt(in *interp, v Value, a *callArgs) Value {
	args := a.bind("default?")
	n, err := in.toInt(v)
	if isClass(err, classType, classValue) {
		var f float64
		if f, err = in.toFloat(v); err == nil { // so that "42.23" gives 42
			n, err = truncate(f, isTrusted(v))
		}
	}
	switch {
	case err == nil:
		return n
	case !isClass(err, classType, classValue, classOverflow):
		panic(err)
	case args[0] == nil:
		return templateInt(0)
	}
	return args[0]
}

func isTrusted(v Value) bool {
	s, ok := v.(*Str)
	return ok && s.trusted() || numberOrigin(v)
}

// filterRound rounds to a number of digits behind the point: halves to the
// even digit, or up, or down.
func filterRound(in *interp, v Value, a *callArgs) Value {
	args := a.bind("precision?", "method?")
	digits := a.argInt(args[0], 0)
	in.needDefined(v)
	f, ok := asFloat(v)
	if !ok {
		panic(typeErrorf("type %s doesn't define __round__ method", v.typeName()))
	}
	if digits < 0 || digits > 300 {
		panic(valueErrorf("round() is for 0 to 300 digits, not %d", digits))
	}
	method := "common"
	if args[1] != nil {
		method = a.argStr(args[1]).s
	}
	if n, isInt := asInt(v); isInt && method == "common" {
		return n
	}
	in.chargeDecimal(f)
	scale := math.Pow10(digits)
	switch method {
	case "common":
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	case "ceil":
		f = math.Ceil(f*scale) / scale
	case "floor":
		f = math.Floor(f*scale) / scale
	default:
		panic(raise(classFilterArg, "method must be common, ceil or floor"))
	}
	return Float{f, numberOrigin(v)}
}
