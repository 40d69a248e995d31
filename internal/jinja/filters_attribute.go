package jinja

import "strconv"

// A getter derives from an item what a filter works on.
type getter func(item Value) (Value, error)

// attributeGetter follows a path such as "user.address.0". Without one it
// returns the item itself. What is not found is replaced by absent, if given.
func (in *interp) attributeGetter(path, absent Value) (getter, error) {
	if path == nil || path == None {
		return func(item Value) (Value, error) { return item, nil }, nil
	}
	parts := []Value{path}
	if s, ok := path.(*Str); ok {
		parts = in.pathParts(s)
	}
	if absent == None {
		absent = nil
	}
	return func(item Value) (Value, error) {
		for _, part := range parts {
			in.step(1)
			var err error
			if item, err = in.subscript(item, part); err != nil {
				return nil, err
			}
			if _, missing := item.(*undefined); missing && absent != nil {
				item = absent
			}
		}
		return item, nil
	}, nil
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
		if index, err := in.pathIndex(part.s); err == nil {
			parts = append(parts, Int{small: index})
		} else {
			parts = append(parts, part)
		}
		i += n + 1
	}
	return parts
}

// pathIndex returns the index that a part of a path is, or an error.
func (in *interp) pathIndex(part string) (int64, error) {
	if !in.every(part, isDigit) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(in.asciiDigits(part), 10, 64)
}

// attributeGetters are the getters of several paths with commas in between.
func (in *interp) attributeGetters(paths Value) ([]getter, error) {
	s, ok := paths.(*Str)
	if !ok {
		get, err := in.attributeGetter(paths, nil)
		return []getter{get}, err
	}
	var out []getter
	for i := 0; i <= len(s.s); {
		n := in.index(s.s[i:], ",")
		if n < 0 {
			n = len(s.s) - i
		}
		in.items(4)
		get, err := in.attributeGetter(s.slice(i, i+n), nil)
		if err != nil {
			return nil, err
		}
		out = append(out, get)
		i += n + 1
	}
	return out, nil
}

func filterAttr(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("name")
	if err != nil {
		return nil, err
	}
	name, err := a.argStr(args[0])
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	attr, ok, err := in.attributeOf(v, name.s)
	if !ok && err == nil {
		return &undefined{obj: v, name: name}, nil
	}
	return attr, err
}

// mapped makes a generator that applies f to the items of v. It does nothing
// for a value that is false, not even complain that it cannot be iterated.
func (in *interp) mapped(desc string, v Value, f func(Value) (Value, bool, error)) *generator {
	var next nextFunc
	return in.newGenerator(desc, func() (Value, bool, error) {
		if next == nil {
			if !truth(v) {
				return nil, false, nil
			}
			var err error
			if next, err = in.iterate(v); err != nil {
				return nil, false, err
			}
		}
		for {
			item, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			in.step(1)
			out, keep, err := f(item)
			if err != nil {
				return nil, false, err
			}
			if keep {
				return out, true, nil
			}
		}
	})
}

func filterMap(in *interp, v Value, a *callArgs) (Value, error) {
	args, kw := a.args, a.kw
	var get getter
	var prepared error
	if len(args) == 0 && kw != nil {
		kw = in.clone(kw)
		if path, ok := in.remove(kw, "attribute"); ok {
			absent, _ := in.remove(kw, "default")
			if kw.Len() > 0 {
				prepared = raise(classFilterArg, "Unexpected keyword argument %s", in.reprText(kw.entries[0].key))
			} else {
				get, prepared = in.attributeGetter(path, absent)
			}
		}
	}
	if get == nil && prepared == nil {
		if len(args) == 0 {
			prepared = raise(classFilterArg, "map requires a filter argument")
		} else {
			get = func(item Value) (Value, error) { return in.callFilter(args[0], item, args[1:], a.kw) }
		}
	}
	return in.mapped("sync_do_map", v, func(item Value) (Value, bool, error) {
		if prepared != nil {
			return nil, false, prepared
		}
		out, err := get(item)
		return out, true, err
	}), nil
}

// choosingFilter makes select, reject, selectattr and rejectattr.
func choosingFilter(desc string, byAttribute, reject bool) method {
	return func(in *interp, v Value, a *callArgs) (Value, error) {
		args := a.args
		get, prepared := in.attributeGetter(nil, nil)
		if byAttribute {
			if len(args) == 0 {
				prepared = raise(classFilterArg, "Missing parameter for attribute name")
			} else {
				get, prepared = in.attributeGetter(args[0], nil)
				args = args[1:]
			}
		}
		return in.mapped(desc, v, func(item Value) (Value, bool, error) {
			if prepared != nil {
				return nil, false, prepared
			}
			subject, err := get(item)
			if err != nil {
				return nil, false, err
			}
			var holds bool
			if len(args) > 0 {
				holds, err = in.callTest(args[0], subject, args[1:], a.kw)
			} else {
				holds = truth(subject)
			}
			return item, holds != reject, err
		}), nil
	}
}
