package jinja

import "unicode/utf8"

func filterLength(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	if loop, ok := v.(*loopContext); ok {
		n, err := loop.count(in)
		return Integer(int64(n)), err
	}
	n, ok := in.length(v)
	if !ok {
		return nil, typeErrorf("object of type '%s' has no len()", v.typeName())
	}
	return Integer(int64(n)), nil
}

func filterList(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	items, err := in.collect(v)
	if err != nil {
		return nil, err
	}
	return NewList(items...), nil
}

func filterFirst(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	next, err := in.iterate(v)
	if err != nil {
		return nil, err
	}
	item, ok, err := next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return undefinedHint("No first item, sequence was empty."), nil
	}
	return item, nil
}

func filterLast(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	if s, ok := v.(*Str); ok && s.s != "" {
		_, n := utf8.DecodeLastRuneInString(s.s)
		return s.slice(len(s.s)-n, len(s.s)), nil
	}
	if _, ok := v.(*undefined); ok {
		return undefinedHint("No last item, sequence was empty."), nil
	}
	back, err := in.reversed(v)
	if err != nil {
		return nil, err
	}
	item, ok, err := back.next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return undefinedHint("No last item, sequence was empty."), nil
	}
	return item, nil
}

func filterRandom(*interp, Value, *callArgs) (Value, error) {
	return nil, raise(classRuntime, "the filter random is not available: a prompt must not depend on chance")
}

func filterReverse(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	if s, ok := v.(*Str); ok {
		n := in.runeCount(s.s)
		return in.sliceStr(s, n, n-1, -1, n), nil
	}
	if back, err := in.reversed(v); err == nil {
		return back, nil
	}
	items, err := in.collect(v)
	if err != nil {
		return nil, raise(classFilterArg, "argument must be iterable")
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return NewList(items...), nil
}

func filterItems(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	// A generator function: what is wrong shows when it is iterated over.
	i := 0
	return in.newGenerator("do_items", func() (Value, bool, error) {
		switch v := v.(type) {
		case *undefined:
			return nil, false, nil
		case *Dict:
			if i >= v.Len() {
				return nil, false, nil
			}
			e := v.entries[i]
			i++
			return newTuple(e.key, e.value), true, nil
		}
		return nil, false, typeErrorf("Can only get item pairs from a mapping.")
	}), nil
}

func filterBatch(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("linecount", "fill_with?")
	if err != nil {
		return nil, err
	}
	var next nextFunc
	size, isInt := asInt(args[0])
	done := false
	var held Value // read, but not yet part of a batch
	return in.newGenerator("do_batch", func() (Value, bool, error) {
		if next == nil {
			if next, err = in.iterate(v); err != nil {
				return nil, false, err
			}
		}
		var row []Value
		if held != nil {
			row, held = append(row, held), nil
		}
		for !done {
			item, ok, err := next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				done = true
				break
			}
			in.items(1)
			if isInt && len(row) == size.clamp() {
				held = item
				return NewList(row...), true, nil
			}
			row = append(row, item)
		}
		if len(row) == 0 {
			return nil, false, nil
		}
		if args[1] != nil && args[1] != None {
			if !isInt {
				return nil, false, typeErrorf("'<' not supported between instances of 'int' and '%s'", args[0].typeName())
			}
			more := max(0, size.clamp()-len(row))
			in.items(more)
			for range more {
				row = append(row, args[1])
			}
		}
		return NewList(row...), true, nil
	}), nil
}

func filterSlice(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("slices", "fill_with?")
	if err != nil {
		return nil, err
	}
	var seq []Value
	slices, i, offset := 0, -1, 0
	return in.newGenerator("sync_do_slice", func() (Value, bool, error) {
		if i < 0 {
			if seq, err = in.collect(v); err != nil {
				return nil, false, err
			}
			if slices, err = a.argInt(args[0], 0); err != nil {
				return nil, false, err
			}
			if slices == 0 {
				return nil, false, divisionByZero("//")
			}
			i = 0
		}
		if i >= slices {
			return nil, false, nil
		}
		in.step(1)
		each, extra := len(seq)/slices, len(seq)%slices
		start := offset + i*each
		if i < extra {
			offset++
		}
		in.items(offset + (i+1)*each - start + 1)
		row := append([]Value(nil), seq[start:offset+(i+1)*each]...)
		if args[1] != nil && args[1] != None && i >= extra {
			row = append(row, args[1])
		}
		i++
		return NewList(row...), true, nil
	}), nil
}

func filterDictsort(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("case_sensitive?", "by?", "reverse?")
	if err != nil {
		return nil, err
	}
	at := 0
	if by, ok := args[1].(*Str); ok && by.s == "value" {
		at = 1
	} else if args[1] != nil && (!ok || by.s != "key") {
		return nil, raise(classFilterArg, `You can only sort by either "key" or "value"`)
	}
	d, ok := v.(*Dict)
	if !ok {
		return nil, in.missingMethod(v, "items")
	}
	in.items(4 * d.Len())
	pairs := make([]Value, d.Len())
	for i, e := range d.entries {
		pairs[i] = newTuple(e.key, e.value)
	}
	err = in.sortBy(pairs, argBool(args[2]), func(pair Value) (Value, error) {
		return in.foldCase(pair.(*Tuple).items[at], argBool(args[0])), nil
	})
	return NewList(pairs...), err
}

// sortBy sorts items by their keys, stably, in descending order if reverse is
// set.
func (in *interp) sortBy(items []Value, reverse bool, key func(Value) (Value, error)) error {
	type keyed struct{ key, item Value }
	in.items(4 * len(items))
	rows := make([]keyed, len(items))
	for i, item := range items {
		k, err := key(item)
		if err != nil {
			return err
		}
		rows[i] = keyed{k, item}
	}
	op := "<"
	if reverse {
		op = ">"
	}
	if err := sortStable(in, rows, func(a, b keyed) (bool, error) { return in.order(op, a.key, b.key) }); err != nil {
		return err
	}
	for i := range rows {
		items[i] = rows[i].item
	}
	return nil
}

// sortStable sorts rows by merging, and stops at the first comparison that
// fails. It charges for its moves; comparisons charge for themselves.
func sortStable[T any](in *interp, rows []T, before func(a, b T) (bool, error)) error {
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
					var err error
					if second, err = before(from[b], from[a]); err != nil {
						return err
					}
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
	return nil
}

// foldCase is the key under which the sorting filters compare a value.
func (in *interp) foldCase(v Value, caseSensitive bool) Value {
	if s, ok := v.(*Str); ok && !caseSensitive {
		return in.lower(s)
	}
	return v
}

func filterSort(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("reverse?", "case_sensitive?", "attribute?")
	if err != nil {
		return nil, err
	}
	getters, err := in.attributeGetters(args[2])
	if err != nil {
		return nil, err
	}
	items, err := in.collect(v)
	if err != nil {
		return nil, err
	}
	err = in.sortBy(items, argBool(args[0]), func(item Value) (Value, error) {
		in.items(len(getters))
		keys := make([]Value, len(getters))
		for i, get := range getters {
			k, err := get(item)
			if err != nil {
				return nil, err
			}
			keys[i] = in.foldCase(k, argBool(args[1]))
		}
		return NewList(keys...), nil
	})
	return NewList(items...), err
}

func filterUnique(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("case_sensitive?", "attribute?")
	if err != nil {
		return nil, err
	}
	get, err := in.attributeGetter(args[1], nil)
	if err != nil {
		return nil, err
	}
	seen := map[dictKey]bool{}
	var next nextFunc
	return in.newGenerator("sync_do_unique", func() (Value, bool, error) {
		if next == nil {
			if next, err = in.iterate(v); err != nil {
				return nil, false, err
			}
		}
		for {
			item, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			key, err := get(item)
			if err != nil {
				return nil, false, err
			}
			k, err := in.hash(in.foldCase(key, argBool(args[0])))
			if err != nil {
				return nil, false, err
			}
			if !seen[k] {
				in.items(6)
				seen[k] = true
				return item, true, nil
			}
		}
	}), nil
}

// extremeFilter makes min or max.
func extremeFilter(op string) method {
	return func(in *interp, v Value, a *callArgs) (Value, error) {
		args, err := a.bind("case_sensitive?", "attribute?")
		if err != nil {
			return nil, err
		}
		get, err := in.attributeGetter(args[1], nil)
		if err != nil {
			return nil, err
		}
		var best, bestKey Value
		err = in.each(v, func(item Value) (bool, error) {
			key, err := get(item)
			if err != nil {
				return false, err
			}
			key = in.foldCase(key, argBool(args[0]))
			better := best == nil
			if !better {
				if better, err = in.order(op, key, bestKey); err != nil {
					return false, err
				}
			}
			if better {
				best, bestKey = item, key
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		if best == nil {
			return undefinedHint("No aggregated item, sequence was empty."), nil
		}
		return best, nil
	}
}

func filterGroupby(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("attribute", "default?", "case_sensitive?")
	if err != nil {
		return nil, err
	}
	get, err := in.attributeGetter(args[0], args[1])
	if err != nil {
		return nil, err
	}
	key := func(item Value) (Value, error) {
		k, err := get(item)
		if err != nil {
			return nil, err
		}
		return in.foldCase(k, argBool(args[2])), nil
	}
	items, err := in.collect(v)
	if err != nil {
		return nil, err
	}
	if err := in.sortBy(items, false, key); err != nil {
		return nil, err
	}
	var groups []Value
	for i := 0; i < len(items); {
		first, err := key(items[i])
		if err != nil {
			return nil, err
		}
		j := i + 1
		for ; j < len(items); j++ {
			k, err := key(items[j])
			if err != nil {
				return nil, err
			}
			if !in.equal(k, first) {
				break
			}
		}
		if first, err = get(items[i]); err != nil {
			return nil, err
		}
		in.items(6)
		groups = append(groups, &Tuple{
			items: []Value{first, NewList(items[i:j:j]...)},
			names: []string{"grouper", "list"},
		})
		i = j
	}
	return NewList(groups...), nil
}

func filterSum(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("attribute?", "start?")
	if err != nil {
		return nil, err
	}
	get, err := in.attributeGetter(args[0], nil)
	if err != nil {
		return nil, err
	}
	var total Value = templateInt(0)
	if args[1] != nil {
		total = args[1]
	}
	if _, ok := total.(*Str); ok {
		return nil, typeErrorf("sum() can't sum strings [use ''.join(seq) instead]")
	}
	err = in.each(v, func(item Value) (bool, error) {
		in.step(2)
		part, err := get(item)
		if err != nil {
			return false, err
		}
		total, err = in.binary("+", total, part)
		return true, err
	})
	return total, err
}

func filterJoin(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("d?", "attribute?")
	if err != nil {
		return nil, err
	}
	get, err := in.attributeGetter(args[1], nil)
	if err != nil {
		return nil, err
	}
	var sep Value = emptyStr
	if args[0] != nil {
		sep = args[0]
	}
	if in.autoescape {
		return in.joinEscaped(v, sep, get)
	}
	d, err := in.str(sep)
	if err != nil {
		return nil, err
	}
	return in.joinWith(d, v, func(_ int, item Value) (*Str, error) {
		part, err := get(item)
		if err != nil {
			return nil, err
		}
		return in.str(part)
	})
}

// joinEscaped joins where the template asked for escaping: once there is any
// markup among the parts, the rest is escaped.
func (in *interp) joinEscaped(v, sep Value, get getter) (Value, error) {
	items, err := in.collect(v)
	if err != nil {
		return nil, err
	}
	markup := isMarkup(sep)
	for i := range items {
		if items[i], err = get(items[i]); err != nil {
			return nil, err
		}
		markup = markup || isMarkup(items[i])
	}
	d, err := in.softStr(sep)
	if err != nil {
		return nil, err
	}
	if markup {
		d = in.escape(d)
	}
	out, err := in.joinWith(d, NewList(items...), func(_ int, item Value) (*Str, error) {
		if markup {
			return in.escapeValue(item)
		}
		return in.str(item)
	})
	if err != nil {
		return nil, err
	}
	out.safe = markup
	return out, nil
}
