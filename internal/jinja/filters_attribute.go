package jinja

import "strconv"

// A getter derives from an item what a filter works on.
type getter func(item Value) Value

// attributeGetter follows a path such as "user.address.0". Without one it
// returns the item itself. What is not found is replaced by absent, if given.
func (in *interp) attributeGetter(path, absent Value) getter {
	if path == nil || path == None {
		return func(item Value) Value { return item }
	}
	parts := []Value{path}
	if s, ok := path.(*Str); ok {
		parts = in.pathParts(s)
	}
	if absent == None {
		absent = nil
	}
	return func(item Value) Value {
		for _, part := range parts {
			in.step(1)
			item = in.subscript(item, part)
			if _, missing := item.(*undefined); missing && absent != nil {
				item = absent
			}
		}
		return item
	}
}

// pathParts splits a path at its points; digits are indices.
func (in *interp) pathParts(path *Str) []Value {
	var parts []Value
	for i := 0; i <= len(path.s); {
		n := in.index(path.s[i:], ".")
		if n < 0 {
			n = len(path.s) - i
		}
		part := path.slice(i, i+n)
		in.items(4)
		if index, err := strconv.ParseUint(part.s, 10, 32); err == nil {
			parts = append(parts, Int{small: int64(index)})
		} else {
			parts = append(parts, part)
		}
		i += n + 1
	}
	return parts
}

func filterAttr(in *interp, v Value, a *callArgs) Value {
	name := a.argStr(a.bind("name")[0])
	in.needDefined(v)
	if attr, ok := in.attributeOf(v, name.s); ok {
		return attr
	}
	return &undefined{obj: v, name: name}
}

// mapped makes a generator that applies f to the items of v. It does nothing
// for a value that is false, not even complain that it cannot be iterated.
func (in *interp) mapped(v Value, f func(Value) (Value, bool)) *generator {
	var next nextFunc
	return in.newGenerator(func() (Value, bool) {
		if next == nil {
			if !truth(v) {
				return nil, false
			}
			next = in.iterate(v)
		}
		for {
			item, ok := next()
			if !ok {
				return nil, false
			}
			in.step(1)
			if out, keep := f(item); keep {
				return out, true
			}
		}
	})
}

func filterMap(in *interp, v Value, a *callArgs) Value {
	args, kw := a.args, a.kw
	var get getter
	switch {
	case len(args) > 0:
		get = func(item Value) Value { return in.callFilter(args[0], item, args[1:], kw) }
	case kw != nil:
		kw = in.clone(kw)
		path, ok := in.remove(kw, "attribute")
		absent, _ := in.remove(kw, "default")
		if kw.Len() > 0 {
			panic(raise(classFilterArg, "Unexpected keyword argument %s", in.reprText(kw.entries[0].key)))
		}
		if ok {
			get = in.attributeGetter(path, absent)
		}
	}
	if get == nil {
		panic(raise(classFilterArg, "map requires a filter argument"))
	}
	return in.mapped(v, func(item Value) (Value, bool) { return get(item), true })
}

// choosingFilter makes select, reject, selectattr and rejectattr.
func choosingFilter(byAttribute, reject bool) method {
	return func(in *interp, v Value, a *callArgs) Value {
		args := a.args
		get := in.attributeGetter(nil, nil)
		if byAttribute {
			if len(args) == 0 {
				panic(raise(classFilterArg, "Missing parameter for attribute name"))
			}
			get = in.attributeGetter(args[0], nil)
			args = args[1:]
		}
		return in.mapped(v, func(item Value) (Value, bool) {
			subject := get(item)
			var holds bool
			if len(args) > 0 {
				holds = in.callTest(args[0], subject, args[1:], a.kw)
			} else {
				holds = truth(subject)
			}
			return item, holds != reject
		})
	}
}
