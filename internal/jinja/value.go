package jinja

import "math/big"

// A Value is a value of the template language: None, Bool, Int, Float, *Str,
// *List, *Tuple, *Dict, or one of the kinds that only templates make, such as
// macros and undefined values.
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

// An Int is an integer of any size.
type Int struct {
	small int64
	big   *big.Int // the value when it does not fit small
	tmpl  bool     // computed from the template's own numbers only
}

func (Int) typeName() string { return "int" }

// Integer returns an integer that counts as the caller's.
func Integer(n int64) Int { return Int{small: n} }

// templateInt returns an integer that counts as the template's.
func templateInt(n int) Int { return Int{small: int64(n), tmpl: true} }

func bigInt(b *big.Int, tmpl bool) Int {
	if b.IsInt64() {
		return Int{small: b.Int64(), tmpl: tmpl}
	}
	return Int{big: b, tmpl: tmpl}
}

func (n Int) bigValue() *big.Int {
	if n.big != nil {
		return n.big
	}
	return big.NewInt(n.small)
}

// bits is the length of n in binary.
func (n Int) bits() int {
	if n.big != nil {
		return n.big.BitLen()
	}
	return 64
}

func (n Int) sign() int {
	if n.big != nil {
		return n.big.Sign()
	}
	switch {
	case n.small < 0:
		return -1
	case n.small > 0:
		return 1
	}
	return 0
}

// clamp returns n as an int, with values out of range at the ends.
func (n Int) clamp() int {
	const limit = 1 << 62
	if n.big != nil {
		return n.big.Sign() * limit
	}
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

// A List is a list; the sandbox lets no template change one.
type List struct{ items []Value }

func (*List) typeName() string { return "list" }

// NewList returns a list of the given items, which it keeps.
func NewList(items ...Value) *List { return &List{items} }

// A Tuple is a tuple. Names is set on the pairs that groupby makes.
type Tuple struct {
	items []Value
	names []string
}

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

// fail is the error of using u.
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
		return raise(class, "'%s' has no attribute %s", objectTypeName(u.obj), in.reprText(name))
	}
	return raise(class, "%s has no element %s", objectTypeName(u.obj), in.reprText(u.name))
}

// objectTypeName describes the type of v as jinja2 does in its messages.
func objectTypeName(v Value) string {
	switch v := v.(type) {
	case noneValue:
		return "None"
	case *Str:
		if v.safe {
			return "markupsafe.Markup object"
		}
	case *namespace, *cycler, *joiner:
		return "jinja2.utils." + v.typeName() + " object"
	case *macro, *loopContext, *undefined, *blockReference, *templateReference:
		return "jinja2.runtime." + v.typeName() + " object"
	}
	return v.typeName() + " object"
}

// A rangeValue is what range returns.
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
type generator struct {
	next nextFunc
	kind string // the Python type
	desc string // the name of the generating function, if any
}

func (g *generator) typeName() string { return g.kind }

// newGenerator makes a generator of a function that may read from others:
// each counts as a nested call.
func (in *interp) newGenerator(desc string, next nextFunc) *generator {
	return &generator{kind: "generator", desc: desc, next: func() (Value, bool, error) {
		in.enter()
		defer in.leave()
		in.step(1)
		return next()
	}}
}

// A dictView is what keys, values and items of a dict return.
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
	call func(in *interp, a *callArgs) (Value, error)
	kind string // the Python type, "" for a function or a bound method
}

func (b *builtin) typeName() string {
	if b.kind != "" {
		return b.kind
	}
	if b.recv != nil {
		return "builtin_function_or_method"
	}
	return "function"
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case noneValue, *undefined:
		return false
	case Bool:
		return bool(v)
	case Int:
		return v.big != nil || v.small != 0
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

// length is Python's len(v) where v has one. The length of a loop is not
// known here, as finding it can fail; a loop is never empty.
func (in *interp) length(v Value) (int, bool) {
	if s, ok := v.(*Str); ok {
		return in.runeCount(s.s), true
	}
	return size(v)
}

// size is the length of a value other than a string.
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

// clean returns v, or the text of a markup string as a plain one.
func plain(s *Str) *Str {
	if !s.safe {
		return s
	}
	p := *s
	p.safe = false
	return &p
}

// asSafe returns s as markup.
func asSafe(s *Str) *Str {
	if s.safe {
		return s
	}
	p := *s
	p.safe = true
	return &p
}
