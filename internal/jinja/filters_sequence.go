package jinja

import "unicode/utf8"

func filterLength(in *interp, v Value, a *callArgs) Value {
	a.positional(0, 0)
	if loop, ok := v.(*loopContext); ok {
		return Integer(int64(loop.count(in)))
	}
	n, ok := in.length(v)
	if !ok {
		panic(typeErrorf("object of type '%s' has no len()", v.typeName()))
	}
	return Integer(int64(n))
}

func filterList(in *interp, v Value, a *callArgs) Value {
	a.bind()
	return NewList(in.collect(v)...)
}

func filterFirst(in *interp, v Value, a *callArgs) Value {
	a.bind()
	item, ok := in.iterate(v)()
	if !ok {
		return undefinedHint("No first item, sequence was empty.")
	}
	return item
}

func filterLast(in *interp, v Value, a *callArgs) Value {
	a.bind()
	if s, ok := v.(*Str); ok && s.s != "" {
		_, n := utf8.DecodeLastRuneInString(s.s)
		return s.slice(len(s.s)-n, len(s.s))
	}
	item, ok := in.reversed(v)()
	if !ok {
		return undefinedHint("No last item, sequence was empty.")
	}
	return item
}

func filterReverse(in *interp, v Value, a *callArgs) Value {
	a.bind()
	if s, ok := v.(*Str); ok {
		n := in.runeCount(s.s)
		return in.sliceStr(s, n, n-1, -1, n)
	}
	if _, ok := size(v); !ok {
		return NewList(in.collect(&generator{in.reversed(v)})...)
	}
	return &generator{in.reversed(v)}
}

func filterItems(in *interp, v Value, a *callArgs) Value {
	a.bind()
	// A generator function: what is wrong shows when it is iterated over.
	i := 0
	return in.newGenerator(func() (Value, bool) {
		switch v := v.(type) {
		case *undefined:
			return nil, false
		case *Dict:
			if i >= v.Len() {
				return nil, false
			}
			e := v.entries[i]
			i++
			return newTuple(e.key, e.value), true
		}
		panic(typeErrorf("Can only get item pairs from a mapping."))
	})
}

func filterDictsort(in *interp, v Value, a *callArgs) Value {
	args := a.bind("case_sensitive?", "by?", "reverse?")
	at := 0
	if by, ok := args[1].(*Str); ok && by.s == "value" {
		at = 1
	} else if args[1] != nil && (!ok || by.s != "key") {
		panic(raise(classFilterArg, `You can only sort by either "key" or "value"`))
	}
	d, ok := v.(*Dict)
	if !ok {
		panic(in.missingMethod(v, "items"))
	}
	in.items(4 * d.Len())
	pairs := make([]Value, d.Len())
	for i, e := range d.entries {
		pairs[i] = newTuple(e.key, e.value)
	}
	in.sortBy(pairs, argBool(args[2]), func(pair Value) Value {
		return in.foldCase(pair.(*Tuple).items[at], argBool(args[0]))
	})
	return NewList(pairs...)
}

// sortBy sorts items by their keys, stably, in descending order if reverse is
// set.
func (in *interp) sortBy(items []Value, reverse bool, key func(Value) Value) {
	type keyed struct{ key, item Value }
	in.items(4 * len(items))
	rows := make([]keyed, len(items))
	for i, item := range items {
		rows[i] = keyed{key(item), item}
	}
	op := "<"
	if reverse {
		op = ">"
	}
	sortStable(in, rows, func(a, b keyed) bool { return in.order(op, a.key, b.key) })
	for i := range rows {
		items[i] = rows[i].item
	}
}

// sortStable sorts rows by merging, and stops at the first comparison that
// fails. It charges for its moves; comparisons charge for themselves.
func sortStable[T any](in *interp, rows []T, before func(a, b T) bool) {
	in.items(4 * len(rows))
	from, to := rows, make([]T, len(rows))
	for width := 1; width < len(rows); width *= 2 {
		for i := 0; i < len(rows); i += 2 * width {
			mid, end := min(i+width, len(rows)), min(i+2*width, len(rows))
			a, b := i, mid
			for k := i; k < end; k++ {
				in.step(1)
				second := a == mid
				if a < mid && b < end {
					second = before(from[b], from[a])
				}
				if second {
					to[k] = from[b]
					b++
				} else {
					to[k] = from[a]
					a++
				}
			}
		}
		from, to = to, from
	}
	copy(rows, from)
}

// foldCase is the key under which the sorting filters compare a value.
func (in *interp) foldCase(v Value, caseSensitive bool) Value {
	if s, ok := v.(*Str); ok && !caseSensitive {
		return in.lower(s)
	}
	return v
}

func filterSort(in *interp, v Value, a *callArgs) Value {
	args := a.bind("reverse?", "case_sensitive?", "attribute?")
	get := in.attributeGetter(args[2], nil)
	items := in.collect(v)
	in.sortBy(items, argBool(args[0]), func(item Value) Value {
		return in.foldCase(get(item), argBool(args[1]))
	})
	return NewList(items...)
}

func filterUnique(in *interp, v Value, a *callArgs) Value {
	args := a.bind("case_sensitive?", "attribute?")
	get := in.attributeGetter(args[1], nil)
	seen := map[dictKey]bool{}
	return in.mapped(v, func(item Value) (Value, bool) {
		key := get(item)
		k := in.hash(in.foldCase(key, argBool(args[0])))
		if seen[k] {
			return nil, false
		}
		in.items(6)
		seen[k] = true
		return item, true
	})
}

// extremeFilter makes min or max.
func extremeFilter(op string) method {
	return func(in *interp, v Value, a *callArgs) Value {
		args := a.bind("case_sensitive?", "attribute?")
		get := in.attributeGetter(args[1], nil)
		var best, bestKey Value
		in.each(v, func(item Value) bool {
			key := in.foldCase(get(item), argBool(args[0]))
			if best == nil || in.order(op, key, bestKey) {
				best, bestKey = item, key
			}
			return true
		})
		if best == nil {
			return undefinedHint("No aggregated item, sequence was empty.")
		}
		return best
	}
}

func filterSum(in *interp, v Value, a *callArgs) Value {
	args := a.bind("attribute?", "start?")
	get := in.attributeGetter(args[0], nil)
	var total Value = templateInt(0)
	if args[1] != nil {
		total = args[1]
	}
	if _, ok := total.(*Str); ok {
		panic(typeErrorf("sum() can't sum strings [use ''.join(seq) instead]"))
	}
	in.each(v, func(item Value) bool {
		in.step(2)
		total = in.binary("+", total, get(item))
		return true
	})
	return total
}

func filterJoin(in *interp, v Value, a *callArgs) Value {
	args := a.bind("d?", "attribute?")
	get := in.attributeGetter(args[1], nil)
	var sep Value = emptyStr
	if args[0] != nil {
		sep = args[0]
	}
	d := in.str(sep)
	return in.joinWith(d, v, func(_ int, item Value) *Str {
		return in.str(get(item))
	})
}
