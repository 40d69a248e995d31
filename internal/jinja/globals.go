package jinja

import (
	"math/big"
	"time"
)

// A namespace is an object whose attributes a template may set.
type namespace struct{ attrs *Dict }

func (*namespace) typeName() string { return "Namespace" }

// A cycler goes round a list of values.
type cycler struct {
	items []Value
	pos   int
}

func (*cycler) typeName() string { return "Cycler" }

func (c *cycler) attr(_ *interp, name string) (Value, bool, error) {
	switch name {
	case "current":
		return c.items[c.pos], true, nil
	case "pos":
		return templateInt(c.pos), true, nil
	case "items":
		return newTuple(c.items...), true, nil
	case "next":
		return &builtin{name: name, recv: c, call: func(_ *interp, a *callArgs) (Value, error) {
			if _, err := a.positional(0, 0); err != nil {
				return nil, err
			}
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}, true, nil
	case "reset":
		return &builtin{name: name, recv: c, call: func(_ *interp, a *callArgs) (Value, error) {
			_, err := a.positional(0, 0)
			c.pos = 0
			return None, err
		}}, true, nil
	}
	return nil, false, nil
}

// A joiner is empty when called first and its separator from then on.
type joiner struct {
	sep  Value
	used bool
}

func (*joiner) typeName() string { return "Joiner" }

func (j *joiner) attr(_ *interp, name string) (Value, bool, error) {
	switch name {
	case "sep":
		return j.sep, true, nil
	case "used":
		return Bool(j.used), true, nil
	}
	return nil, false, nil
}

func (j *joiner) call(a *callArgs) (Value, error) {
	a.name = "joiner"
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	if !j.used {
		j.used = true
		return emptyStr, nil
	}
	return j.sep, nil
}

// globals are the names that every template knows.
var globals map[string]Value

func init() {
	globals = map[string]Value{
		"range":           &builtin{name: "range", call: makeRange},
		"dict":            &builtin{name: "dict", kind: "type", call: makeDict},
		"namespace":       &builtin{name: "jinja2.utils.Namespace", kind: "type", call: makeNamespace},
		"cycler":          &builtin{name: "jinja2.utils.Cycler", kind: "type", call: makeCycler},
		"joiner":          &builtin{name: "jinja2.utils.Joiner", kind: "type", call: makeJoiner},
		"lipsum":          &builtin{name: "generate_lorem_ipsum", call: lipsum},
		"raise_exception": &builtin{name: "raise_exception", call: raiseException},
		"strftime_now":    &builtin{name: "strftime_now", call: strftimeNow},
	}
}

func makeRange(in *interp, a *callArgs) (Value, error) {
	args, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	in.step(8) // it works with big integers
	parts := [3]Int{{}, {}, {small: 1}}
	tmpl := true
	for i, v := range args {
		if v == nil {
			continue
		}
		n, ok := asInt(v)
		if !ok {
			if u, isUndefined := v.(*undefined); isUndefined && u.class != "" {
				return nil, in.failUndefined(u)
			}
			return nil, typeErrorf("'%s' object cannot be interpreted as an integer", v.typeName())
		}
		if len(a.args) == 1 {
			i = 1
		}
		tmpl = tmpl && n.tmpl
		parts[i] = n
	}
	if parts[2].sign() == 0 {
		return nil, valueErrorf("range() arg 3 must not be zero")
	}
	start, stop, step := parts[0].bigValue(), parts[1].bigValue(), parts[2].bigValue()
	count := rangeLength(start, stop, step)
	if count.Cmp(big.NewInt(maxRange)) > 0 {
		return nil, raise(classOverflow,
			"Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	if !start.IsInt64() || !stop.IsInt64() || !step.IsInt64() {
		return nil, raise(classOverflow, "range() arguments must fit 64 bits")
	}
	return &rangeValue{start.Int64(), stop.Int64(), step.Int64(), int(count.Int64()), tmpl}, nil
}

func rangeLength(start, stop, step *big.Int) *big.Int {
	n := new(big.Int).Sub(stop, start)
	if n.Sign() == 0 || n.Sign() != step.Sign() {
		return new(big.Int)
	}
	by := new(big.Int).Abs(step)
	n.Abs(n).Add(n, by).Sub(n, big.NewInt(1))
	return n.Quo(n, by)
}

// makeDict is Python's dict: from a mapping or pairs, and keywords.
func makeDict(in *interp, a *callArgs) (Value, error) {
	if len(a.args) > 1 {
		return nil, typeErrorf("dict expected at most 1 argument, got %d", len(a.args))
	}
	out := NewDict()
	if len(a.args) == 1 {
		if err := in.update(out, a.args[0]); err != nil {
			return nil, err
		}
	}
	if a.kw != nil {
		if err := in.update(out, a.kw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// update adds the entries of a mapping or the pairs of an iterable to d.
func (in *interp) update(d *Dict, from Value) error {
	if m, ok := from.(*Dict); ok {
		in.rehash(m)
		for _, e := range m.entries {
			d.put(e.hash, e.key, e.value)
		}
		return nil
	}
	return in.each(from, func(item Value) (bool, error) {
		pair, err := in.unpack(item, 2)
		if err != nil {
			return false, err
		}
		return true, in.set(d, pair[0], pair[1])
	})
}

func makeNamespace(in *interp, a *callArgs) (Value, error) {
	d, err := makeDict(in, a)
	if err != nil {
		return nil, err
	}
	return &namespace{d.(*Dict)}, nil
}

func makeCycler(in *interp, a *callArgs) (Value, error) {
	if len(a.args) == 0 {
		return nil, raise("RuntimeError", "at least one item has to be provided")
	}
	if _, err := a.positional(1, len(a.args)); err != nil {
		return nil, err
	}
	in.items(len(a.args))
	return &cycler{items: append([]Value(nil), a.args...)}, nil
}

func makeJoiner(_ *interp, a *callArgs) (Value, error) {
	args, err := a.bind("sep?")
	if err != nil {
		return nil, err
	}
	if args[0] == nil {
		return &joiner{sep: String(", ", true)}, nil
	}
	return &joiner{sep: args[0]}, nil
}

func lipsum(*interp, *callArgs) (Value, error) {
	return nil, raise(classRuntime, "lipsum is not available: it makes random text")
}

func raiseException(in *interp, a *callArgs) (Value, error) {
	args, err := a.bind("message")
	if err != nil {
		return nil, err
	}
	message, err := in.str(args[0])
	if err != nil {
		return nil, err
	}
	return nil, &RaiseError{Message: message.s}
}

// strftimeNow formats the time of the rendering. Its digits count as the
// template's where the format is the template's, for no caller chose them.
func strftimeNow(in *interp, a *callArgs) (Value, error) {
	args, err := a.bind("format")
	if err != nil {
		return nil, err
	}
	format, ok := args[0].(*Str)
	if !ok {
		return nil, typeErrorf("strftime() argument 1 must be str, not %s", args[0].typeName())
	}
	if in.when.IsZero() {
		in.when = in.now()
	}
	in.step(len(format.s)) // it is read byte by byte
	b := in.builder()
	if err := writeTime(b, format, in.when); err != nil {
		return nil, err
	}
	return b.done(), nil
}

// clock is how the interpreter reads the time.
type clock func() time.Time
