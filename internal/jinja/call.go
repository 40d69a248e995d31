package jinja

import (
	"slices"
	"strings"
)

// callArgs are the arguments of a call.
type callArgs struct {
	name string // of the function, for messages
	args []Value
	kw   *Dict // nil without keyword arguments
}

// A method is a function whose first argument is its receiver.
type method func(in *interp, recv Value, a *callArgs) Value

// call calls f, as f(*args, **kw) in Python.
func (in *interp) call(f Value, a *callArgs) Value {
	in.step(1)
	switch f := f.(type) {
	case *builtin:
		a.name = f.name
		return f.call(in, a)
	case *macro:
		return f.call(in, a)
	case *loopContext:
		return f.recurse(in, a)
	case *joiner:
		return f.call(a)
	case *undefined:
		panic(in.failUndefined(f))
	}
	panic(typeErrorf("'%s' object is not callable", f.typeName()))
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *builtin, *macro, *loopContext, *joiner, *undefined:
		return true
	}
	return false
}

// bind assigns the arguments to named parameters. A parameter whose name ends in "?" is optional;
// its default is nil.
func (a *callArgs) bind(params ...string) []Value {
	if len(a.args) > len(params) {
		panic(typeErrorf("%s() takes at most %d arguments (%d given)", a.name, len(params), len(a.args)))
	}
	out := make([]Value, len(params))
	copy(out, a.args)
	used := 0
	for i, p := range params {
		name := strings.TrimSuffix(p, "?")
		if a.kw != nil {
			if v, ok := a.kw.Get(name); ok {
				if out[i] != nil {
					panic(typeErrorf("%s() got multiple values for argument '%s'", a.name, name))
				}
				out[i] = v
				used++
			}
		}
		if out[i] == nil && name == p {
			panic(typeErrorf("%s() missing required argument '%s'", a.name, name))
		}
	}
	if a.kw != nil && used < a.kw.Len() {
		for _, e := range a.kw.entries {
			if !slices.ContainsFunc(params, func(p string) bool { return strings.TrimSuffix(p, "?") == e.hash.text }) {
				panic(typeErrorf("%s() got an unexpected keyword argument '%s'", a.name, clip(e.hash.text)))
			}
		}
	}
	return out
}

// positional checks the arguments of a function that takes no keyword arguments, and pads them with
// nil up to most.
func (a *callArgs) positional(least, most int) []Value {
	if a.kw != nil && a.kw.Len() > 0 {
		panic(typeErrorf("%s() takes no keyword arguments", a.name))
	}
	if n := len(a.args); n < least || n > most {
		panic(typeErrorf("%s() takes from %d to %d arguments (%d given)", a.name, least, most, n))
	}
	out := make([]Value, most)
	copy(out, a.args)
	return out
}

// argStr returns an argument that must be a string.
func (a *callArgs) argStr(v Value) *Str {
	s, ok := v.(*Str)
	if !ok {
		panic(typeErrorf("%s() argument must be str, not %s", a.name, v.typeName()))
	}
	return s
}

// argInt returns an argument that must be an integer, or the default for nil.
func (a *callArgs) argInt(v Value, absent int) int {
	if v == nil {
		return absent
	}
	n, ok := asInt(v)
	if !ok {
		panic(typeErrorf("%s(): '%s' object cannot be interpreted as an integer", a.name, v.typeName()))
	}
	return n.clamp()
}

// argIndent returns an argument that is a string, or a number of spaces.
func (a *callArgs) argIndent(in *interp, v Value, absent int) *Str {
	if s, ok := v.(*Str); ok {
		return s
	}
	b := in.builder()
	b.repeat(" ", a.argInt(v, absent), false)
	return b.done()
}

// argBool returns the truth of an argument; nil is false.
func argBool(v Value) bool { return v != nil && truth(v) }
