package jinja

// A namespace is an object whose attributes a template may set.
type namespace struct{ attrs *Dict }

func (*namespace) typeName() string { return "Namespace" }

// A joiner returns an empty string on its first call and its separator on later calls.
type joiner struct {
	sep  Value
	used bool
}

func (*joiner) typeName() string { return "Joiner" }

func (j *joiner) call(a *callArgs) Value {
	a.name = "joiner"
	a.positional(0, 0)
	if !j.used {
		j.used = true
		return emptyStr
	}
	return j.sep
}

// globals holds the names that every template has.
var globals map[string]Value

func init() {
	globals = map[string]Value{
		"range":           &builtin{name: "range", call: makeRange},
		"dict":            &builtin{name: "dict", call: makeDict},
		"namespace":       &builtin{name: "namespace", call: makeNamespace},
		"joiner":          &builtin{name: "joiner", call: makeJoiner},
		"raise_exception": &builtin{name: "raise_exception", call: raiseException},
		"strftime_now":    &builtin{name: "strftime_now", call: strftimeNow},
	}
}

func makeRange(in *interp, a *callArgs) Value {
	args := a.positional(1, 3)
	parts := [3]int64{0, 0, 1}
	tmpl := true
	for i, v := range args {
		if v == nil {
			continue
		}
		n, ok := asInt(v)
		if !ok {
			if u, isUndefined := v.(*undefined); isUndefined && u.class != "" {
				panic(in.failUndefined(u))
			}
			panic(typeErrorf("'%s' object cannot be interpreted as an integer", v.typeName()))
		}
		if n.clamp() != int(n.small) || n.wide != "" {
			panic(errOverflow())
		}
		if len(a.args) == 1 {
			i = 1
		}
		tmpl = tmpl && n.tmpl
		parts[i] = n.small
	}
	start, stop, step := parts[0], parts[1], parts[2]
	if step == 0 {
		panic(valueErrorf("range() arg 3 must not be zero"))
	}
	count := sliceCount(int(start), int(stop), int(step))
	if count > maxRange {
		panic(raise(classOverflow, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange))
	}
	return &rangeValue{start, stop, step, count, tmpl}
}

// makeDict implements Python's dict: from a mapping or pairs, and keywords.
func makeDict(in *interp, a *callArgs) Value {
	if len(a.args) > 1 {
		panic(typeErrorf("dict expected at most 1 argument, got %d", len(a.args)))
	}
	out := NewDict()
	if len(a.args) == 1 {
		in.update(out, a.args[0])
	}
	if a.kw != nil {
		in.update(out, a.kw)
	}
	return out
}

// update adds the entries of a mapping or the pairs of an iterable to d.
func (in *interp) update(d *Dict, from Value) {
	if m, ok := from.(*Dict); ok {
		in.rehash(m)
		for _, e := range m.entries {
			d.put(e.hash, e.key, e.value)
		}
		return
	}
	in.each(from, func(item Value) bool {
		pair := in.unpack(item, 2)
		in.set(d, pair[0], pair[1])
		return true
	})
}

func makeNamespace(in *interp, a *callArgs) Value {
	return &namespace{makeDict(in, a).(*Dict)}
}

func makeJoiner(_ *interp, a *callArgs) Value {
	args := a.bind("sep?")
	if args[0] == nil {
		return &joiner{sep: String(", ", true)}
	}
	return &joiner{sep: args[0]}
}

func raiseException(in *interp, a *callArgs) Value {
	args := a.bind("message")
	panic(&RaiseError{Message: in.str(args[0]).s})
}

// strftimeNow formats the time of the rendering. Its digits count as the template's if the format
// does, since no caller chose them.
func strftimeNow(in *interp, a *callArgs) Value {
	args := a.bind("format")
	format, ok := args[0].(*Str)
	if !ok {
		panic(typeErrorf("strftime() argument 1 must be str, not %s", args[0].typeName()))
	}
	if in.when.IsZero() {
		in.when = in.now()
	}
	in.step(len(format.s)) // it is read byte by byte
	b := in.builder()
	writeTime(b, format, in.when)
	return b.done()
}
