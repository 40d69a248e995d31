package jinja

import (
	"strings"
	"unicode/utf8"
)

// attribute is foo.name: an attribute of v, or else the item of that name.
func (in *interp) attribute(v Value, name *Str) Value {
	in.needDefined(v)
	attr, ok := in.attributeOf(v, name.s)
	if ok {
		return attr
	}
	if item, ok := in.item(v, name); ok {
		return item
	}
	return &undefined{obj: v, name: name}
}

// subscript is foo[key]: an item of v, or else the attribute of that name.
func (in *interp) subscript(v, key Value) Value {
	in.needDefined(v)
	if item, ok := in.item(v, key); ok {
		return item
	}
	if name, ok := key.(*Str); ok {
		attr, ok := in.attributeOf(v, name.s)
		if ok {
			return attr
		}
	}
	return &undefined{obj: v, name: key}
}

// attributeOf looks an attribute up. What the sandbox forbids is an undefined
// value that fails when it is used.
func (in *interp) attributeOf(v Value, name string) (Value, bool) {
	in.scan(len(name))
	if _, isNamespace := v.(*namespace); !isNamespace && (strings.HasPrefix(name, "__") || isMutator(v, name)) {
		in.step(stepsPerError)
		return &undefined{
			hint:  "access to attribute '" + clip(name) + "' of '" + v.typeName() + "' object is unsafe.",
			obj:   v,
			name:  String(name, true),
			class: classSecurity,
		}, true
	}
	return in.findAttribute(v, name)
}

func isMutator(v Value, name string) bool {
	switch v.(type) {
	case *List:
		switch name {
		case "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove":
			return true
		}
	case *Dict:
		switch name {
		case "clear", "pop", "popitem", "setdefault", "update":
			return true
		}
	}
	return false
}

// findAttribute looks up an attribute that the sandbox allows.
func (in *interp) findAttribute(v Value, name string) (Value, bool) {
	if ns, ok := v.(*namespace); ok {
		attr, ok := ns.attrs.Get(name)
		return attr, ok
	}
	switch v := v.(type) {
	case *Str:
		return bind(v, name, strMethods)
	case *Dict:
		return bind(v, name, dictMethods)
	case *List:
		return bind(v, name, sequenceMethods)
	case *Tuple, *rangeValue:
		return bind(v, name, sequenceMethods)
	case interface {
		attr(in *interp, name string) (Value, bool)
	}:
		return v.attr(in, name)
	}
	return nil, false
}

// bind returns the method of v called name.
func bind(v Value, name string, methods map[string]method) (Value, bool) {
	m, ok := methods[name]
	if !ok {
		return nil, false
	}
	return &builtin{name: name, recv: v, call: func(in *interp, a *callArgs) Value {
		a.name = name
		return m(in, v, a)
	}}, true
}

// item is Python's v[key], false where Python raises a TypeError or a
// LookupError.
func (in *interp) item(v, key Value) (Value, bool) {
	if d, ok := v.(*Dict); ok {
		k, ok := in.tryHash(key)
		if !ok {
			return nil, false
		}
		return d.get(k)
	}
	n, ok := asInt(key)
	if !ok {
		return nil, false
	}
	i := n.clamp()
	if s, ok := v.(*Str); ok {
		return in.char(s, i)
	}
	size, ok := size(v)
	if !ok {
		return nil, false
	}
	if i < 0 {
		i += size
	}
	if i < 0 || i >= size {
		return nil, false
	}
	switch v := v.(type) {
	case *List:
		return v.items[i], true
	case *Tuple:
		return v.items[i], true
	case *rangeValue:
		return v.at(i), true
	}
	return nil, false
}

// char returns the i-th character of s, from the end if i is negative.
func (in *interp) char(s *Str, i int) (Value, bool) {
	if i < 0 {
		if i += in.runeCount(s.s); i < 0 {
			return nil, false
		}
	}
	from := in.runeOffset(s.s, i)
	if from == len(s.s) {
		return nil, false
	}
	_, n := utf8.DecodeRuneInString(s.s[from:])
	return s.slice(from, from+n), true
}

// bounds turns the parts of a slice of a sequence of n items into a start, a
// stop and a step, as Python's slice.indices.
func (in *interp) bounds(start, stop, step Value, n int) (int, int, int) {
	by := 1
	if step != None {
		s, ok := asInt(step)
		if !ok {
			panic(in.sliceError(step))
		}
		if s.small == 0 {
			panic(valueErrorf("slice step cannot be zero"))
		}
		by = s.clamp()
	}
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
	}
	at := func(v Value, absent int) int {
		if v == None {
			return absent
		}
		i, ok := asInt(v)
		if !ok {
			panic(in.sliceError(v))
		}
		k := i.clamp()
		if k < 0 {
			k += n
		}
		return max(low, min(high, k))
	}
	first, last := low, high
	if by < 0 {
		first, last = high, low
	}
	return at(start, first), at(stop, last), by
}

func (in *interp) sliceError(v Value) error {
	if u, ok := v.(*undefined); ok && u.class == classSecurity {
		panic(in.failUndefined(u))
	}
	panic(typeErrorf("slice indices must be integers or None or have an __index__ method"))
}

// sliceCount is the number of indices from i towards j by steps of by.
func sliceCount(i, j, by int) int {
	switch {
	case by > 0 && i < j:
		return (j-i-1)/by + 1
	case by < 0 && i > j:
		return (i-j-1)/-by + 1
	}
	return 0
}

// sliceOf is Python's v[start:stop:step].
func (in *interp) sliceOf(v, start, stop, step Value) Value {
	in.needDefined(v)
	n, ok := in.length(v)
	if _, isDict := v.(*Dict); isDict {
		panic(typeErrorf("unhashable type: 'slice'"))
	}
	if _, isView := v.(*dictView); !ok || isView {
		panic(typeErrorf("'%s' object is not subscriptable", v.typeName()))
	}
	i, j, by := in.bounds(start, stop, step, n)
	count := sliceCount(i, j, by)
	switch v := v.(type) {
	case *List:
		return NewList(in.pick(v.items, i, by, count)...)
	case *Tuple:
		return newTuple(in.pick(v.items, i, by, count)...)
	case *rangeValue:
		from := v.start + int64(i)*v.step
		return &rangeValue{
			start: from, stop: v.start + int64(j)*v.step, step: v.step * int64(by), length: count, tmpl: v.tmpl,
		}
	}
	return in.sliceStr(v.(*Str), n, i, by, count)
}

// pick returns count items from index i on, every by-th. A stretch shares the
// memory of the sequence, which never changes.
func (in *interp) pick(items []Value, i, by, count int) []Value {
	if count == 0 {
		return nil
	}
	if by == 1 {
		in.step(1)
		return items[i : i+count : i+count]
	}
	in.items(count)
	out := make([]Value, count)
	for k := range out {
		out[k] = items[i+k*by]
	}
	return out
}

// sliceStr returns count of the n characters of s from i on, every by-th.
func (in *interp) sliceStr(s *Str, n, i, by, count int) *Str {
	if count == 0 {
		return s.slice(0, 0)
	}
	if by == 1 {
		from := in.runeOffset(s.s, i)
		return s.slice(from, from+in.runeOffset(s.s[from:], count))
	}
	in.growTimes(n+1, 8)
	starts := make([]int, 0, n+1)
	for at := range s.s {
		in.step(1)
		starts = append(starts, at)
	}
	starts = append(starts, len(s.s))
	b := in.builder()
	for k := range count {
		c := i + k*by
		b.slice(s, starts[c], starts[c+1])
	}
	return b.done()
}
