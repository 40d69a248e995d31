package jinja

import "unicode/utf8"

// A nextFunc returns the next item of an iteration, or false at its end.
type nextFunc func() (Value, bool)

// iterate starts an iteration over v. A generator continues at its position.
func (in *interp) iterate(v Value) nextFunc {
	i := 0
	switch v := v.(type) {
	case *List:
		return in.counted(len(v.items), func(i int) Value { return v.items[i] })
	case *Tuple:
		return in.counted(len(v.items), func(i int) Value { return v.items[i] })
	case *Dict:
		return in.counted(v.Len(), func(i int) Value { return v.entries[i].key })
	case *dictView:
		return in.counted(v.dict.Len(), v.at)
	case *rangeValue:
		return in.counted(v.length, func(i int) Value { return v.at(i) })
	case *Str:
		return func() (Value, bool) {
			if i >= len(v.s) {
				return nil, false
			}
			_, n := utf8.DecodeRuneInString(v.s[i:])
			in.items(8)
			c := v.slice(i, i+n)
			i += n
			return c, true
		}
	case *undefined:
		return in.counted(0, nil)
	case *generator:
		return v.next
	case *loopContext:
		return func() (Value, bool) {
			item, ok := v.advance()
			if !ok {
				return nil, false
			}
			return newTuple(item, v), true
		}
	}
	panic(typeErrorf("'%s' object is not iterable", v.typeName()))
}

func (in *interp) counted(n int, at func(int) Value) nextFunc {
	i := 0
	return func() (Value, bool) {
		if i >= n {
			return nil, false
		}
		in.step(1)
		i++
		return at(i - 1), true
	}
}

// each calls f with every item of v until f returns false.
func (in *interp) each(v Value, f func(Value) bool) {
	next := in.iterate(v)
	for {
		if item, ok := next(); !ok || !f(item) {
			return
		}
	}
}

// collect returns the items of v in a new slice.
func (in *interp) collect(v Value) []Value {
	switch v := v.(type) {
	case *List:
		in.items(len(v.items))
		return append([]Value(nil), v.items...)
	case *Tuple:
		in.items(len(v.items))
		return append([]Value(nil), v.items...)
	}
	var out []Value
	in.each(v, func(item Value) bool {
		in.items(1)
		out = append(out, item)
		return true
	})
	return out
}

// reversed iterates over v from its end.
func (in *interp) reversed(v Value) nextFunc {
	var n int
	var at func(int) Value
	switch v := v.(type) {
	case *List:
		n, at = len(v.items), func(i int) Value { return v.items[i] }
	case *Tuple:
		n, at = len(v.items), func(i int) Value { return v.items[i] }
	case *Dict:
		n, at = v.Len(), func(i int) Value { return v.entries[i].key }
	case *dictView:
		n, at = v.dict.Len(), v.at
	case *rangeValue:
		n, at = v.length, func(i int) Value { return v.at(i) }
	default:
		items := in.collect(v)
		n, at = len(items), func(i int) Value { return items[i] }
	}
	return in.counted(n, func(i int) Value { return at(n - 1 - i) })
}

// unpack returns exactly n items of v, for an assignment to n targets.
func (in *interp) unpack(v Value, n int) []Value {
	in.step(n)
	if t, ok := v.(*Tuple); ok && len(t.items) == n {
		return t.items
	}
	next := in.iterate(v)
	out := make([]Value, 0, n)
	for {
		item, ok := next()
		if !ok {
			break
		}
		if len(out) == n {
			panic(valueErrorf("too many values to unpack (expected %d)", n))
		}
		out = append(out, item)
	}
	if len(out) < n {
		panic(valueErrorf("not enough values to unpack (expected %d, got %d)", n, len(out)))
	}
	return out
}
