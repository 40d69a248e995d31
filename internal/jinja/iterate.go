package jinja

import "unicode/utf8"

// A nextFunc returns the next item of an iteration, or false at its end.
type nextFunc func() (Value, bool, error)

// iterate starts an iteration over v. A generator continues where it stands.
func (in *interp) iterate(v Value) (nextFunc, error) {
	i := 0
	switch v := v.(type) {
	case *List:
		return in.counted(len(v.items), func(i int) Value { return v.items[i] }), nil
	case *Tuple:
		return in.counted(len(v.items), func(i int) Value { return v.items[i] }), nil
	case *Dict:
		return in.counted(v.Len(), func(i int) Value { return v.entries[i].key }), nil
	case *dictView:
		return in.counted(v.dict.Len(), v.at), nil
	case *rangeValue:
		return in.counted(v.length, func(i int) Value { return v.at(i) }), nil
	case *Str:
		return func() (Value, bool, error) {
			if i >= len(v.s) {
				return nil, false, nil
			}
			_, n := utf8.DecodeRuneInString(v.s[i:])
			in.items(8)
			c := plain(v.slice(i, i+n)) // even of markup
			i += n
			return c, true, nil
		}, nil
	case *undefined:
		return in.counted(0, nil), nil
	case *generator:
		return v.next, nil
	case *loopContext:
		return func() (Value, bool, error) {
			item, ok, err := v.advance()
			if !ok || err != nil {
				return nil, false, err
			}
			return newTuple(item, v), true, nil
		}, nil
	}
	return nil, typeErrorf("'%s' object is not iterable", v.typeName())
}

func (in *interp) counted(n int, at func(int) Value) nextFunc {
	i := 0
	return func() (Value, bool, error) {
		if i >= n {
			return nil, false, nil
		}
		in.step(1)
		i++
		return at(i - 1), true, nil
	}
}

// each calls f with every item of v until f returns false or an error.
func (in *interp) each(v Value, f func(Value) (bool, error)) error {
	next, err := in.iterate(v)
	if err != nil {
		return err
	}
	for {
		item, ok, err := next()
		if !ok || err != nil {
			return err
		}
		if more, err := f(item); err != nil || !more {
			return err
		}
	}
}

// collect returns the items of v in a new slice.
func (in *interp) collect(v Value) ([]Value, error) {
	switch v := v.(type) {
	case *List:
		in.items(len(v.items))
		return append([]Value(nil), v.items...), nil
	case *Tuple:
		in.items(len(v.items))
		return append([]Value(nil), v.items...), nil
	}
	var out []Value
	err := in.each(v, func(item Value) (bool, error) {
		in.items(1)
		out = append(out, item)
		return true, nil
	})
	return out, err
}

// reversed is Python's reversed(v).
func (in *interp) reversed(v Value) (*generator, error) {
	var n int
	var at func(int) Value
	kind := "reversed"
	switch v := v.(type) {
	case *List:
		n, at, kind = len(v.items), func(i int) Value { return v.items[i] }, "list_reverseiterator"
	case *Tuple:
		n, at = len(v.items), func(i int) Value { return v.items[i] }
	case *Dict:
		n, at, kind = v.Len(), func(i int) Value { return v.entries[i].key }, "dict_reversekeyiterator"
	case *dictView:
		n, at, kind = v.dict.Len(), v.at, v.kind[:len("dict_")]+"reverse"+v.kind[len("dict_"):len(v.kind)-1]+"iterator"
	case *rangeValue:
		n, at, kind = v.length, func(i int) Value { return v.at(i) }, "range_iterator"
	case *Str:
		chars, err := in.collect(v)
		if err != nil {
			return nil, err
		}
		n, at = len(chars), func(i int) Value { return chars[i] }
	case *undefined:
	default:
		return nil, typeErrorf("'%s' object is not reversible", v.typeName())
	}
	next := in.counted(n, func(i int) Value { return at(n - 1 - i) })
	return &generator{next: next, kind: kind}, nil
}

// unpack returns exactly n items of v, as assignment to n targets needs them.
func (in *interp) unpack(v Value, n int) ([]Value, error) {
	in.step(n)
	if t, ok := v.(*Tuple); ok && len(t.items) == n {
		return t.items, nil
	}
	next, err := in.iterate(v)
	if err != nil {
		return nil, typeErrorf("cannot unpack non-iterable %s object", v.typeName())
	}
	out := make([]Value, 0, n)
	for {
		item, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if len(out) == n {
			return nil, valueErrorf("too many values to unpack (expected %d)", n)
		}
		out = append(out, item)
	}
	if len(out) < n {
		return nil, valueErrorf("not enough values to unpack (expected %d, got %d)", n, len(out))
	}
	return out, nil
}
