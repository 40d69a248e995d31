package jinja

import (
	"strings"
	"unicode/utf8"
)

// attribute is foo.name: an attribute of v, or else the item of that name.
func (in *interp) attribute(v Value, name *Str) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	attr, ok, err := in.attributeOf(v, name.s)
	if ok || err != nil {
		return attr, err
	}
	if item, ok := in.item(v, name); ok {
		return item, nil
	}
	return &undefined{obj: v, name: name}, nil
}

// subscript is foo[key]: an item of v, or else the attribute of that name.
func (in *interp) subscript(v, key Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	if item, ok := in.item(v, key); ok {
		return item, nil
	}
	if ref, ok := v.(*templateReference); ok {
		return ref.block(key)
	}
	if name, ok := key.(*Str); ok {
		attr, ok, err := in.attributeOf(v, name.s)
		if ok || err != nil {
			return attr, err
		}
	}
	return &undefined{obj: v, name: key}, nil
}

// attributeOf looks an attribute up. What the sandbox forbids is an undefined
// value that fails when it is used.
func (in *interp) attributeOf(v Value, name string) (Value, bool, error) {
	in.scan(len(name))
	attr, ok, err := in.findAttribute(v, name)
	if !ok || err != nil {
		return nil, false, err
	}
	if strings.HasPrefix(name, "_") || isMutator(v, name) {
		in.step(stepsPerError)
		return &undefined{
			hint:  "access to attribute '" + clip(name) + "' of '" + v.typeName() + "' object is unsafe.",
			obj:   v,
			name:  String(name, true),
			class: classSecurity,
		}, true, nil
	}
	return attr, true, nil
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

// specialNames are the attributes that every Python object has.
var specialNames = setOf("__class__", "__delattr__", "__dir__", "__doc__", "__eq__", "__format__", "__ge__",
	"__getattribute__", "__getstate__", "__gt__", "__hash__", "__init__", "__init_subclass__", "__le__", "__lt__",
	"__ne__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__setattr__", "__sizeof__", "__str__",
	"__subclasshook__")

// containerNames are those that every container has besides.
var containerNames = setOf("__len__", "__getitem__", "__iter__", "__contains__")

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// findAttribute looks an attribute up regardless of the sandbox.
func (in *interp) findAttribute(v Value, name string) (Value, bool, error) {
	if ns, ok := v.(*namespace); ok {
		attr, ok := ns.attrs.Get(name)
		return attr, ok, nil
	}
	if isMutator(v, name) {
		return None, true, nil
	}
	if strings.HasPrefix(name, "__") {
		_, isContainer := size(v)
		if _, isStr := v.(*Str); isStr {
			isContainer = true
		}
		return None, specialNames[name] || isContainer && containerNames[name], nil
	}
	switch v := v.(type) {
	case *Str:
		return bind(v, name, strMethods)
	case *Dict:
		return bind(v, name, dictMethods)
	case *List:
		return bind(v, name, sequenceMethods)
	case *Tuple:
		for i, n := range v.names {
			if n == name {
				return v.items[i], true, nil
			}
		}
		if name == "copy" {
			return nil, false, nil
		}
		return bind(v, name, sequenceMethods)
	case *rangeValue:
		switch name {
		case "start":
			return Int{small: v.start, tmpl: v.tmpl}, true, nil
		case "stop":
			return Int{small: v.stop, tmpl: v.tmpl}, true, nil
		case "step":
			return Int{small: v.step, tmpl: v.tmpl}, true, nil
		case "copy":
			return nil, false, nil
		}
		return bind(v, name, sequenceMethods)
	case Int, Bool, Float:
		return numberAttribute(v, name)
	case interface {
		attr(in *interp, name string) (Value, bool, error)
	}:
		return v.attr(in, name)
	}
	return nil, false, nil
}

// bind returns the method of v called name.
func bind(v Value, name string, methods map[string]method) (Value, bool, error) {
	m, ok := methods[name]
	if !ok {
		return nil, false, nil
	}
	return &builtin{name: name, recv: v, call: func(in *interp, a *callArgs) (Value, error) {
		a.name = name
		return m(in, v, a)
	}}, true, nil
}

// item is Python's v[key], false where Python raises a TypeError or a
// LookupError.
func (in *interp) item(v, key Value) (Value, bool) {
	if d, ok := v.(*Dict); ok {
		k, err := in.hash(key)
		if err != nil {
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
func (in *interp) bounds(start, stop, step Value, n int) (int, int, int, error) {
	by := 1
	if step != None {
		s, ok := asInt(step)
		if !ok {
			return 0, 0, 0, in.sliceError(step)
		}
		if s.sign() == 0 {
			return 0, 0, 0, valueErrorf("slice step cannot be zero")
		}
		by = s.clamp()
	}
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
	}
	at := func(v Value, absent int) (int, error) {
		if v == None {
			return absent, nil
		}
		i, ok := asInt(v)
		if !ok {
			return 0, in.sliceError(v)
		}
		k := i.clamp()
		if k < 0 {
			k += n
		}
		return max(low, min(high, k)), nil
	}
	first, last := low, high
	if by < 0 {
		first, last = high, low
	}
	i, err := at(start, first)
	if err != nil {
		return 0, 0, 0, err
	}
	j, err := at(stop, last)
	return i, j, by, err
}

func (in *interp) sliceError(v Value) error {
	if u, ok := v.(*undefined); ok && u.class == classSecurity {
		return in.failUndefined(u)
	}
	return typeErrorf("slice indices must be integers or None or have an __index__ method")
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
func (in *interp) sliceOf(v, start, stop, step Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	n, ok := in.length(v)
	if _, isDict := v.(*Dict); isDict {
		return nil, typeErrorf("unhashable type: 'slice'")
	}
	if _, isView := v.(*dictView); !ok || isView {
		return nil, typeErrorf("'%s' object is not subscriptable", v.typeName())
	}
	i, j, by, err := in.bounds(start, stop, step, n)
	if err != nil {
		return nil, err
	}
	count := sliceCount(i, j, by)
	switch v := v.(type) {
	case *List:
		return NewList(in.pick(v.items, i, by, count)...), nil
	case *Tuple:
		return newTuple(in.pick(v.items, i, by, count)...), nil
	case *rangeValue:
		from := v.start + int64(i)*v.step
		return &rangeValue{
			start: from, stop: v.start + int64(j)*v.step, step: v.step * int64(by), length: count, tmpl: v.tmpl,
		}, nil
	}
	return in.sliceStr(v.(*Str), n, i, by, count), nil
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
	out := b.done()
	out.safe = s.safe
	return out
}
