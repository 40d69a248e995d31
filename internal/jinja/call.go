package jinja

import "strings"

// callArgs are the arguments of a call.
type callArgs struct {
	name string // of the function, for messages
	args []Value
	kw   *Dict // nil without keyword arguments
}

// A method is a function whose first argument is what it belongs to.
type method func(in *interp, recv Value, a *callArgs) (Value, error)

// call is Python's f(*args, **kw).
func (in *interp) call(f Value, a *callArgs) (Value, error) {
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
	case *blockReference:
		return f.call(in, a)
	case *undefined:
		return nil, in.failUndefined(f)
	}
	return nil, typeErrorf("'%s' object is not callable", f.typeName())
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *builtin, *macro, *loopContext, *joiner, *blockReference, *undefined:
		return true
	}
	return false
}

// bind distributes the arguments over named parameters. A name that ends in
// "?" may be missing; its value is then nil.
func (a *callArgs) bind(params ...string) ([]Value, error) {
	if len(a.args) > len(params) {
		return nil, typeErrorf("%s() takes at most %d arguments (%d given)", a.name, len(params), len(a.args))
	}
	out := make([]Value, len(params))
	copy(out, a.args)
	used := 0
	for i, p := range params {
		name := strings.TrimSuffix(p, "?")
		if a.kw != nil {
			if v, ok := a.kw.Get(name); ok {
				if out[i] != nil {
					return nil, typeErrorf("%s() got multiple values for argument '%s'", a.name, name)
				}
				out[i] = v
				used++
			}
		}
		if out[i] == nil && name == p {
			return nil, typeErrorf("%s() missing required argument '%s'", a.name, name)
		}
	}
	if a.kw != nil && used < a.kw.Len() {
		for _, e := range a.kw.entries {
			if !hasParam(params, e.hash.text) {
				return nil, typeErrorf("%s() got an unexpected keyword argument '%s'", a.name, clip(e.hash.text))
			}
		}
	}
	return out, nil
}

func hasParam(params []string, name string) bool {
	for _, p := range params {
		if strings.TrimSuffix(p, "?") == name {
			return true
		}
	}
	return false
}

// positional checks a function that takes no keyword arguments, and pads its
// arguments with nil up to most.
func (a *callArgs) positional(least, most int) ([]Value, error) {
	if a.kw != nil && a.kw.Len() > 0 {
		return nil, typeErrorf("%s() takes no keyword arguments", a.name)
	}
	if n := len(a.args); n < least || n > most {
		return nil, typeErrorf("%s() takes from %d to %d arguments (%d given)", a.name, least, most, n)
	}
	out := make([]Value, most)
	copy(out, a.args)
	return out, nil
}

// argStr is an argument that has to be a string.
func (a *callArgs) argStr(v Value) (*Str, error) {
	s, ok := v.(*Str)
	if !ok {
		return nil, typeErrorf("%s() argument must be str, not %s", a.name, v.typeName())
	}
	return s, nil
}

// argInt is an argument that has to be an integer; nil gives the default.
func (a *callArgs) argInt(v Value, absent int) (int, error) {
	if v == nil {
		return absent, nil
	}
	n, ok := asInt(v)
	if !ok {
		return 0, typeErrorf("%s(): '%s' object cannot be interpreted as an integer", a.name, v.typeName())
	}
	return n.clamp(), nil
}

// argBool is an argument used for its truth; nil is false.
func argBool(v Value) bool { return v != nil && truth(v) }
