package jinja

import (
	"cmp"
	"math"
	"math/big"
)

// binary is an arithmetic operator.
func (in *interp) binary(op string, a, b Value) (Value, error) {
	if v, ok, err := in.arithmetic(op, a, b); ok {
		return v, err
	}
	switch op {
	case "+":
		if v, ok, err := in.join(a, b); ok {
			return v, err
		}
	case "*":
		if v, ok, err := in.times(a, b); ok {
			return v, err
		}
	case "%":
		if format, ok := a.(*Str); ok {
			return in.percent(format, b)
		}
	}
	if u, ok := a.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	if u, ok := b.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	if s, ok := a.(*Str); ok && op == "+" && !s.safe {
		return nil, typeErrorf(`can only concatenate str (not "%s") to str`, b.typeName())
	}
	if op == "**" {
		op = "** or pow()"
	}
	return nil, typeErrorf("unsupported operand type(s) for %s: '%s' and '%s'", op, a.typeName(), b.typeName())
}

// join is + on two sequences of one type.
func (in *interp) join(a, b Value) (Value, bool, error) {
	switch x := a.(type) {
	case *Str:
		y, ok := b.(*Str)
		if !ok {
			return nil, false, nil
		}
		if x.safe || y.safe {
			return asSafe(in.concat(in.escape(x), in.escape(y))), true, nil
		}
		return in.concat(x, y), true, nil
	case *List:
		if y, ok := b.(*List); ok {
			return NewList(in.append(x.items, y.items)...), true, nil
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return newTuple(in.append(x.items, y.items)...), true, nil
		}
	}
	return nil, false, nil
}

// append returns the items of a and b in a new slice.
func (in *interp) append(a, b []Value) []Value {
	in.items(len(a) + len(b))
	out := make([]Value, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}

// times is * on a sequence and a number, in either order.
func (in *interp) times(a, b Value) (Value, bool, error) {
	n, ok := asInt(b)
	if !ok {
		if n, ok = asInt(a); !ok {
			return nil, false, nil
		}
		a = b
	}
	count := max(0, n.clamp())
	switch x := a.(type) {
	case *Str:
		if x.s == "" || count == 0 {
			return &Str{tmpl: true, safe: x.safe}, true, nil
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
		s := out.done()
		s.safe = x.safe
		return s, true, nil
	case *List:
		return NewList(in.cycleItems(x.items, count)...), true, nil
	case *Tuple:
		return newTuple(in.cycleItems(x.items, count)...), true, nil
	}
	return nil, false, nil
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
func (in *interp) unary(op string, v Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, in.failUndefined(u)
	}
	if op == "-" {
		if r, ok := in.negate(v); ok {
			return r, nil
		}
	} else if n, ok := asInt(v); ok {
		return n, nil
	} else if f, ok := v.(Float); ok {
		return f, nil
	}
	return nil, typeErrorf("bad operand type for unary %s: '%s'", op, v.typeName())
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
		return in.equalViews(x, b)
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

// equalViews compares views of keys or items as the sets they are; views of
// values are equal to nothing but themselves.
func (in *interp) equalViews(a *dictView, other Value) bool {
	b, ok := other.(*dictView)
	if !ok || a.kind == "dict_values" || b.kind == "dict_values" {
		return ok && a == b
	}
	if a.dict.Len() != b.dict.Len() {
		return false
	}
	for i := range a.dict.entries {
		if found, err := in.contains(b, a.at(i)); err != nil || !found {
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
		if x.big == nil && y.big == nil {
			switch {
			case x.small < y.small:
				return -1, true
			case x.small > y.small:
				return 1, true
			}
			return 0, true
		}
		in.scan(min(x.bits(), y.bits()) / 8)
		return x.bigValue().Cmp(y.bigValue()), true
	}
	f, okF := a.(Float)
	g, okG := b.(Float)
	switch {
	case okF && okG:
		switch {
		case f.f < g.f:
			return -1, true
		case f.f > g.f:
			return 1, true
		}
		return 0, f.f == g.f
	case okF && okY:
		return in.compareFloatInt(f.f, y)
	case okX && okG:
		c, ok := in.compareFloatInt(g.f, x)
		return -c, ok
	}
	return 0, false
}

func (in *interp) compareFloatInt(f float64, n Int) (int, bool) {
	const exact = 1 << 53
	switch {
	case n.big == nil && n.small > -exact && n.small < exact && !math.IsNaN(f):
		return cmp.Compare(f, float64(n.small)), true
	case math.IsNaN(f):
		return 0, false
	case math.IsInf(f, 1):
		return 1, true
	case math.IsInf(f, -1):
		return -1, true
	}
	in.chargeBig(n.bits(), 64)
	return new(big.Float).SetFloat64(f).Cmp(new(big.Float).SetInt(n.bigValue())), true
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
func (in *interp) order(op string, a, b Value) (bool, error) { return in.orderAt(op, a, b, 0) }

func (in *interp) orderAt(op string, a, b Value, depth int) (bool, error) {
	nesting(depth)
	in.step(1)
	switch x := a.(type) {
	case *Str:
		if y, ok := b.(*Str); ok {
			return holds(op, in.compareText(x.s, y.s)), nil
		}
	case Int, Bool, Float:
		if isNumber(b) {
			c, ok := in.compareNumbers(a, b)
			return ok && holds(op, c), nil
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
	if u, ok := a.(*undefined); ok {
		return false, in.failUndefined(u)
	}
	if u, ok := b.(*undefined); ok {
		return false, in.failUndefined(u)
	}
	return false, typeErrorf("'%s' not supported between instances of '%s' and '%s'", op, a.typeName(), b.typeName())
}

// orderItems compares the first items that differ, or else the lengths.
func (in *interp) orderItems(op string, a, b []Value, depth int) (bool, error) {
	for i := range min(len(a), len(b)) {
		if !in.equalAt(a[i], b[i], depth+1) {
			return in.orderAt(op, a[i], b[i], depth+1)
		}
	}
	return holds(op, len(a)-len(b)), nil
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
func (in *interp) contains(seq, item Value) (bool, error) {
	switch x := seq.(type) {
	case *Str:
		y, ok := item.(*Str)
		if !ok {
			return false, typeErrorf("'in <string>' requires string as left operand, not %s", item.typeName())
		}
		return in.index(x.s, y.s) >= 0, nil
	case *Dict:
		return in.hasKey(x, item)
	case *dictView:
		switch x.kind {
		case "dict_keys":
			return in.hasKey(x.dict, item)
		case "dict_items":
			pair, ok := item.(*Tuple)
			if !ok || len(pair.items) != 2 {
				return false, nil
			}
			k, err := in.hash(pair.items[0])
			if err != nil {
				return false, err
			}
			v, ok := x.dict.get(k)
			return ok && in.equal(v, pair.items[1]), nil
		}
	}
	next, err := in.iterate(seq)
	if err != nil {
		return false, typeErrorf("argument of type '%s' is not iterable", seq.typeName())
	}
	for {
		v, ok, err := next()
		if !ok || err != nil {
			return false, err
		}
		if in.equal(v, item) {
			return true, nil
		}
	}
}

func (in *interp) hasKey(d *Dict, key Value) (bool, error) {
	k, err := in.hash(key)
	if err != nil {
		return false, err
	}
	return d.find(k) >= 0, nil
}
