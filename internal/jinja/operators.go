package jinja

import (
	"cmp"
	"strings"
)

// binary is an arithmetic operator.
func (in *interp) binary(op string, a, b Value) Value {
	if v, ok := in.arithmetic(op, a, b); ok {
		return v
	}
	switch op {
	case "+":
		if v, ok := in.join(a, b); ok {
			return v
		}
	case "*":
		if v, ok := in.times(a, b); ok {
			return v
		}
	case "%":
		if _, ok := a.(*Str); ok {
			panic(typeErrorf("the operator %% does not format strings here; use ~ or the method format"))
		}
	}
	in.needDefined(a)
	in.needDefined(b)
	if _, ok := a.(*Str); ok && op == "+" {
		panic(typeErrorf(`can only concatenate str (not "%s") to str`, b.typeName()))
	}
	if op == "**" {
		op = "** or pow()"
	}
	panic(typeErrorf("unsupported operand type(s) for %s: '%s' and '%s'", op, a.typeName(), b.typeName()))
}

// join is + on two sequences of one type.
func (in *interp) join(a, b Value) (Value, bool) {
	switch x := a.(type) {
	case *Str:
		y, ok := b.(*Str)
		if !ok {
			return nil, false
		}
		return in.concat(x, y), true
	case *List:
		if y, ok := b.(*List); ok {
			return NewList(in.append(x.items, y.items)...), true
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return newTuple(in.append(x.items, y.items)...), true
		}
	}
	return nil, false
}

// append returns the items of a and b in a new slice.
func (in *interp) append(a, b []Value) []Value {
	in.items(len(a) + len(b))
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...)
}

// times is * on a sequence and a number, in either order.
func (in *interp) times(a, b Value) (Value, bool) {
	n, ok := asInt(b)
	if !ok {
		if n, ok = asInt(a); !ok {
			return nil, false
		}
		a = b
	}
	count := max(0, n.clamp())
	switch x := a.(type) {
	case *Str:
		if x.s == "" || count == 0 {
			return emptyStr, true
		}
		out := in.builder()
		if x.runs == nil {
			out.repeat(x.s, count, x.tmpl)
		} else {
			in.fits(count, len(x.s)+valueSize*(len(x.runs)-1))
			for range count {
				out.str(x)
			}
		}
		return out.done(), true
	case *List:
		return NewList(in.cycleItems(x.items, count)...), true
	case *Tuple:
		return newTuple(in.cycleItems(x.items, count)...), true
	}
	return nil, false
}

func (in *interp) cycleItems(items []Value, count int) []Value {
	if len(items) == 0 || count == 0 {
		return nil
	}
	in.growTimes(count, len(items)*valueSize)
	out := make([]Value, 0, count*len(items))
	for range count {
		out = append(out, items...)
	}
	return out
}

// unary is the operator + or -.
func (in *interp) unary(op string, v Value) Value {
	in.needDefined(v)
	if op == "-" {
		return negate(v)
	}
	if n, ok := asInt(v); ok {
		return n
	}
	if f, ok := v.(Float); ok {
		return f
	}
	panic(typeErrorf("bad operand type for unary %s: '%s'", op, v.typeName()))
}

// equal is Python's a == b.
func (in *interp) equal(a, b Value) bool { return in.equalAt(a, b, 0) }

func (in *interp) equalAt(a, b Value, depth int) bool {
	nesting(depth)
	in.step(1)
	switch x := a.(type) {
	case *Str:
		y, ok := b.(*Str)
		return ok && in.sameText(x.s, y.s)
	case Int, Bool, Float:
		c, ok := in.compareNumbers(a, b)
		return ok && c == 0
	case *List:
		y, ok := b.(*List)
		return ok && in.equalItems(x.items, y.items, depth)
	case *Tuple:
		y, ok := b.(*Tuple)
		return ok && in.equalItems(x.items, y.items, depth)
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || x.Len() != y.Len() {
			return false
		}
		for _, e := range x.entries {
			in.probe(e.hash)
			v, ok := y.get(e.hash)
			if !ok || !in.equalAt(e.value, v, depth+1) {
				return false
			}
		}
		return true
	case *dictView:
		y, ok := b.(*dictView)
		return ok && x.dict == y.dict && x.kind == y.kind && x.kind != "dict_values"
	case *rangeValue:
		y, ok := b.(*rangeValue)
		return ok && x.length == y.length && (x.length == 0 || x.start == y.start) && (x.length <= 1 || x.step == y.step)
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *builtin:
		y, ok := b.(*builtin)
		return ok && (x == y || x.recv != nil && x.name == y.name && x.recv == y.recv)
	}
	return a == b
}

func (in *interp) equalItems(a, b []Value, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !in.equalAt(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

// compareNumbers orders two numbers exactly. It is false for what is not a
// number or has no order, as NaN.
func (in *interp) compareNumbers(a, b Value) (int, bool) {
	x, okX := asInt(a)
	y, okY := asInt(b)
	if okX && okY {
		if c := cmp.Compare(x.small, y.small); c != 0 || x.wide == y.wide {
			return c, true
		}
		return in.compareWide(x.wide, y.wide), true
	}
	f, okF := asFloat(a)
	g, okG := asFloat(b)
	return cmp.Compare(f, g), okF && okG && f == f && g == g
}

// compareWide orders the digits of two integers of one sign. One that is not
// wide, at the end of what 64 bits hold, is the nearer to zero.
func (in *interp) compareWide(a, b string) int {
	c := cmp.Compare(len(a), len(b))
	if c == 0 {
		c = in.compareText(a, b)
	}
	if strings.HasPrefix(a+b, "-") {
		return -c
	}
	return c
}

// isNumber reports whether v is an int, a bool or a float.
func isNumber(v Value) bool {
	switch v.(type) {
	case Int, Bool, Float:
		return true
	}
	return false
}

// order is one of the operators <, <=, > and >=.
func (in *interp) order(op string, a, b Value) bool { return in.orderAt(op, a, b, 0) }

func (in *interp) orderAt(op string, a, b Value, depth int) bool {
	nesting(depth)
	in.step(1)
	switch x := a.(type) {
	case *Str:
		if y, ok := b.(*Str); ok {
			return holds(op, in.compareText(x.s, y.s))
		}
	case Int, Bool, Float:
		if isNumber(b) {
			c, ok := in.compareNumbers(a, b)
			return ok && holds(op, c)
		}
	case *List:
		if y, ok := b.(*List); ok {
			return in.orderItems(op, x.items, y.items, depth)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return in.orderItems(op, x.items, y.items, depth)
		}
	}
	in.needDefined(a)
	in.needDefined(b)
	panic(typeErrorf("'%s' not supported between instances of '%s' and '%s'", op, a.typeName(), b.typeName()))
}

// orderItems compares the first items that differ, or else the lengths.
func (in *interp) orderItems(op string, a, b []Value, depth int) bool {
	for i := range min(len(a), len(b)) {
		if !in.equalAt(a[i], b[i], depth+1) {
			return in.orderAt(op, a[i], b[i], depth+1)
		}
	}
	return holds(op, len(a)-len(b))
}

// holds reports whether an operator holds for two values of which the first
// is smaller (c < 0), equal, or greater.
func holds(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains is Python's item in seq.
func (in *interp) contains(seq, item Value) bool {
	switch x := seq.(type) {
	case *Str:
		y, ok := item.(*Str)
		if !ok {
			panic(typeErrorf("'in <string>' requires string as left operand, not %s", item.typeName()))
		}
		return in.index(x.s, y.s) >= 0
	case *Dict:
		return in.hasKey(x, item)
	case *dictView:
		switch x.kind {
		case "dict_keys":
			return in.hasKey(x.dict, item)
		case "dict_items": // as the set that it is
			pair, ok := item.(*Tuple)
			if !ok || len(pair.items) != 2 {
				return false
			}
			k := in.hash(pair.items[0])
			v, ok := x.dict.get(k)
			return ok && in.equal(v, pair.items[1])
		}
	}
	next := in.iterate(seq)
	for {
		v, ok := next()
		if !ok {
			return false
		}
		if in.equal(v, item) {
			return true
		}
	}
}

func (in *interp) hasKey(d *Dict, key Value) bool {
	return d.find(in.hash(key)) >= 0
}
