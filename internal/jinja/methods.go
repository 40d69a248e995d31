package jinja

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
		"copy": func(in *interp, recv Value, a *callArgs) Value {
			a.positional(0, 0)
			return in.clone(recv.(*Dict))
		},
	}
	sequenceMethods = map[string]method{
		"count": func(in *interp, recv Value, a *callArgs) Value {
			n, _ := in.occurrences(recv, a)
			return Integer(int64(n))
		},
		"index": func(in *interp, recv Value, a *callArgs) Value {
			n, first := in.occurrences(recv, a)
			if n == 0 {
				panic(valueErrorf("%s is not in %s", in.reprText(a.args[0]), recv.typeName()))
			}
			return Integer(int64(first))
		},
	}
}

func viewMethod(kind string) method {
	return func(_ *interp, recv Value, a *callArgs) Value {
		a.positional(0, 0)
		return &dictView{recv.(*Dict), kind}
	}
}

func dictGet(in *interp, recv Value, a *callArgs) Value {
	args := a.positional(1, 2)
	k := in.hash(args[0])
	if v, ok := recv.(*Dict).get(k); ok {
		return v
	}
	if args[1] != nil {
		return args[1]
	}
	return None
}

// occurrences counts the items of a sequence that equal the argument, and
// returns the place of the first.
func (in *interp) occurrences(recv Value, a *callArgs) (n, first int) {
	args := a.positional(1, 1)
	at := 0
	in.each(recv, func(item Value) bool {
		if in.equal(item, args[0]) {
			if n++; n == 1 {
				first = at
			}
		}
		at++
		return true
	})
	return n, first
}
