package jinja

import "math"

// dictMethods are the methods of dicts that do not change them.
var dictMethods map[string]method

// sequenceMethods are those of lists, tuples and ranges.
var sequenceMethods map[string]method

func init() {
	dictMethods = map[string]method{
		"keys":   viewMethod("dict_keys"),
		"values": viewMethod("dict_values"),
		"items":  viewMethod("dict_items"),
		"get":    dictGet,
		"copy": func(in *interp, recv Value, a *callArgs) (Value, error) {
			if _, err := a.positional(0, 0); err != nil {
				return nil, err
			}
			return in.clone(recv.(*Dict)), nil
		},
		"fromkeys": dictFromkeys,
	}
	sequenceMethods = map[string]method{
		"count": seqCount,
		"index": seqIndex,
		"copy": func(in *interp, recv Value, a *callArgs) (Value, error) {
			if _, err := a.positional(0, 0); err != nil {
				return nil, err
			}
			items, err := in.collect(recv)
			return NewList(items...), err
		},
	}
}

func viewMethod(kind string) method {
	return func(_ *interp, recv Value, a *callArgs) (Value, error) {
		_, err := a.positional(0, 0)
		return &dictView{recv.(*Dict), kind}, err
	}
}

func dictGet(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	k, err := in.hash(args[0])
	if err != nil {
		return nil, err
	}
	if v, ok := recv.(*Dict).get(k); ok {
		return v, nil
	}
	if args[1] != nil {
		return args[1], nil
	}
	return None, nil
}

func dictFromkeys(in *interp, _ Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	if args[1] == nil {
		args[1] = None
	}
	out := NewDict()
	err = in.each(args[0], func(key Value) (bool, error) { return true, in.set(out, key, args[1]) })
	return out, err
}

func seqCount(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	n := 0
	err = in.each(recv, func(item Value) (bool, error) {
		if in.equal(item, args[0]) {
			n++
		}
		return true, nil
	})
	return Integer(int64(n)), err
}

func seqIndex(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	n, _ := size(recv)
	for k := 1; k < 3; k++ {
		if args[k] == nil {
			args[k] = None
		}
	}
	i, j, _, err := in.bounds(args[1], args[2], None, n)
	if err != nil {
		return nil, err
	}
	at, found := 0, -1
	err = in.each(recv, func(item Value) (bool, error) {
		if at >= i && at < j && in.equal(item, args[0]) {
			found = at
		}
		at++
		return found < 0 && at < j, nil
	})
	if err == nil && found < 0 {
		err = valueErrorf("%s is not in %s", in.reprText(args[0]), recv.typeName())
	}
	return Integer(int64(found)), err
}

// numberAttribute looks up an attribute of an int, a bool or a float.
func numberAttribute(v Value, name string) (Value, bool, error) {
	fn := func(f func() Value) (Value, bool, error) {
		return &builtin{name: name, recv: v, call: func(_ *interp, a *callArgs) (Value, error) {
			_, err := a.positional(0, 0)
			return f(), err
		}}, true, nil
	}
	if f, ok := v.(Float); ok {
		switch name {
		case "real":
			return v, true, nil
		case "imag":
			return Float{0, f.tmpl}, true, nil
		case "conjugate":
			return fn(func() Value { return v })
		case "is_integer":
			return fn(func() Value { return Bool(f.f == math.Trunc(f.f) && !math.IsInf(f.f, 0)) })
		}
		return nil, false, nil
	}
	n, _ := asInt(v)
	switch name {
	case "real", "numerator":
		return n, true, nil
	case "imag":
		return Int{tmpl: n.tmpl}, true, nil
	case "denominator":
		return Int{small: 1, tmpl: n.tmpl}, true, nil
	case "conjugate":
		return fn(func() Value { return n })
	case "bit_length":
		return fn(func() Value { return Int{small: int64(n.bigValue().BitLen()), tmpl: n.tmpl} })
	}
	return nil, false, nil
}
