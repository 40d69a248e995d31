package jinja

import (
	"maps"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/nearest"
)

// A Value is a value of the template language: None, Bool, Int, Float, *Str, *List, *Tuple, *Dict,
// or a kind that only templates make, such as macros and undefined values.
type Value interface {
	// typeName is the name Python gives the type.
	typeName() string
}

type noneValue struct{}

// None is Python's None, JSON's null.
var None Value = noneValue{}

func (noneValue) typeName() string { return "NoneType" }

// Bool is a truth value.
type Bool bool

func (Bool) typeName() string { return "bool" }

// An Int is a 64-bit integer. An integer in JSON may be wider: it can be printed and compared, but
// not used in arithmetic.
type Int struct {
	small int64  // the nearest integer, where wide is set
	wide  string // the decimal digits of an integer of more than 64 bits
	tmpl  bool   // computed from the template's own numbers only
}

func (Int) typeName() string { return "int" }

// Integer returns an integer that counts as the caller's.
func Integer(n int64) Int { return Int{small: n} }

// templateInt returns an integer that counts as the template's.
func templateInt(n int) Int { return Int{small: int64(n), tmpl: true} }

// wideInt returns an integer of more than 64 bits, given its digits.
func wideInt(digits string, tmpl bool) Int {
	if digits[0] == '-' {
		return Int{math.MinInt64, digits, tmpl}
	}
	return Int{math.MaxInt64, digits, tmpl}
}

// clamp returns n as an int, limited to the range of int.
func (n Int) clamp() int {
	const limit = 1 << 62
	return int(max(-limit, min(limit, n.small)))
}

// A Float is a double.
type Float struct {
	f    float64
	tmpl bool
}

func (Float) typeName() string { return "float" }

// Number returns a floating-point number that counts as the caller's.
func Number(f float64) Float { return Float{f: f} }

// A List is a list. The sandbox does not let templates change it.
type List struct{ items []Value }

func (*List) typeName() string { return "list" }

// NewList returns a list of the given items, which it keeps.
func NewList(items ...Value) *List { return &List{items} }

// A Tuple is a tuple.
type Tuple struct{ items []Value }

func (*Tuple) typeName() string { return "tuple" }

func newTuple(items ...Value) *Tuple { return &Tuple{items: items} }

// An undefined value stands for a failed lookup.
type undefined struct {
	hint  string
	obj   Value // what the lookup was in, or nil
	name  Value // what was looked up
	class string
}

func (*undefined) typeName() string { return "Undefined" }

func undefinedName(name string) *undefined {
	return &undefined{name: String(name, true)}
}

func undefinedHint(hint string) *undefined { return &undefined{hint: hint} }

// needDefined fails if v is undefined.
func (in *interp) needDefined(v Value) {
	if u, ok := v.(*undefined); ok {
		panic(in.failUndefined(u))
	}
}

// failUndefined fails with the error of using u.
func (in *interp) failUndefined(u *undefined) error {
	class := u.class
	if class == "" {
		class = classUndefined
	}
	switch name, isStr := u.name.(*Str); {
	case u.hint != "":
		return raise(class, "%s", u.hint)
	case u.obj == nil:
		return raise(class, "%s is undefined", in.reprText(u.name))
	case isStr:
		return raise(class, "'%s' has no attribute %s%s", objectTypeName(u.obj), in.reprText(name), nearestMethod(u.obj, name.s))
	}
	return raise(class, "%s has no element %s", objectTypeName(u.obj), in.reprText(u.name))
}

// nearestMethod returns the part of an error message that names the method of v nearest to name. It
// is empty for values whose items name may refer to.
func nearestMethod(v Value, name string) string {
	var methods map[string]method
	switch v.(type) {
	case *Str:
		methods = strMethods
	case *List, *Tuple, *rangeValue:
		methods = sequenceMethods
	default:
		return ""
	}
	return "; the nearest is '" + nearest.Names(name, slices.Collect(maps.Keys(methods)), 1)[0] + "'"
}

// objectTypeName describes the type of v as jinja2 does in its messages.
func objectTypeName(v Value) string {
	switch v.(type) {
	case noneValue:
		return "None"
	case *namespace, *joiner:
		return "jinja2.utils." + v.typeName() + " object"
	case *macro, *loopContext, *undefined:
		return "jinja2.runtime." + v.typeName() + " object"
	}
	return v.typeName() + " object"
}

// A rangeValue is the result of range.
type rangeValue struct {
	start, stop, step int64
	length            int
	tmpl              bool
}

func (*rangeValue) typeName() string { return "range" }

func (r *rangeValue) at(i int) Int {
	return Int{small: r.start + int64(i)*r.step, tmpl: r.tmpl}
}

// A generator is an iterator, consumed as it is read.
type generator struct{ next nextFunc }

func (*generator) typeName() string { return "generator" }

// newGenerator returns a generator of a function that may read from other generators: each counts
// as a nested call.
func (in *interp) newGenerator(next nextFunc) *generator {
	return &generator{func() (Value, bool) {
		in.enter()
		defer in.leave()
		in.step(1)
		return next()
	}}
}

// A dictView is the result of a dict's keys, values and items.
type dictView struct {
	dict *Dict
	kind string // "dict_keys", "dict_values", "dict_items"
}

func (v *dictView) typeName() string { return v.kind }

func (v *dictView) at(i int) Value {
	e := v.dict.entries[i]
	switch v.kind {
	case "dict_keys":
		return e.key
	case "dict_values":
		return e.value
	}
	return newTuple(e.key, e.value)
}

// A builtin is a function or a bound method of this package.
type builtin struct {
	name string
	recv Value // of a bound method
	call func(in *interp, a *callArgs) Value
}

func (b *builtin) typeName() string {
	if b.recv != nil {
		return "builtin_function_or_method"
	}
	return "function"
}

// truth returns Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case noneValue, *undefined:
		return false
	case Bool:
		return bool(v)
	case Int:
		return v.small != 0
	case Float:
		return v.f != 0
	case *Str:
		return v.s != ""
	}
	if n, ok := size(v); ok {
		return n != 0
	}
	return true
}

// length returns Python's len(v) if v has one. The length of a loop is unknown here, since finding
// it can fail; a loop is never empty.
func (in *interp) length(v Value) (int, bool) {
	if s, ok := v.(*Str); ok {
		return in.runeCount(s.s), true
	}
	return size(v)
}

// size returns the length of a value other than a string.
func size(v Value) (int, bool) {
	switch v := v.(type) {
	case *List:
		return len(v.items), true
	case *Tuple:
		return len(v.items), true
	case *Dict:
		return v.Len(), true
	case *rangeValue:
		return v.length, true
	case *dictView:
		return v.dict.Len(), true
	case *undefined:
		return 0, true
	}
	return 0, false
}
