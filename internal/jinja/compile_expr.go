package jinja

import "fmt"

// expr compiles an expression.
func (c *compiler) expr(n node, r *region) exprCode {
	switch n := n.(type) {
	case *constExpr:
		return func(*frame) Value { return n.value }
	case *textExpr:
		return func(*frame) Value { return n.text }
	case *nameExpr:
		get, missing := c.variable(n.name, r), undefinedName(n.name)
		return func(fr *frame) Value {
			fr.in.step(1)
			if v := get(fr); v != nil {
				return v
			}
			return missing
		}
	case *tupleExpr:
		items := c.exprs(n.items, r)
		return func(fr *frame) Value {
			return newTuple(evalAll(fr, items)...)
		}
	case *listExpr:
		items := c.exprs(n.items, r)
		return func(fr *frame) Value {
			return NewList(evalAll(fr, items)...)
		}
	case *dictExpr:
		return c.dict(n, r)
	case *condExpr:
		return c.cond(n, r)
	case *filterExpr:
		return c.filter(n, r)
	case *testExpr:
		return c.test(n, r)
	case *callExpr:
		return c.call(n, r)
	case *getattrExpr:
		v, name := c.expr(n.node, r), String(n.attr, true)
		return func(fr *frame) Value {
			fr.in.step(1)
			return fr.in.attribute(v(fr), name)
		}
	case *getitemExpr:
		return c.getitem(n, r)
	case *sliceExpr:
		// Within a tuple of subscripts; nothing here can be indexed so.
		return func(*frame) Value { panic(typeErrorf("indices must be integers or slices, not tuple")) }
	case *concatExpr:
		return c.concat(n, r)
	case *compareExpr:
		return c.compare(n, r)
	case *binaryExpr:
		return c.binary(n, r)
	case *unaryExpr:
		v := c.expr(n.node, r)
		return func(fr *frame) Value {
			fr.in.step(1)
			x := v(fr)
			if n.op == "not" {
				return Bool(!truth(x))
			}
			return fr.in.unary(n.op, x)
		}
	}
	panic(fmt.Sprintf("jinja: no such expression: %T", n))
}

func (c *compiler) exprs(nodes []node, r *region) []exprCode {
	out := make([]exprCode, len(nodes))
	for i, n := range nodes {
		out[i] = c.expr(n, r)
	}
	return out
}

func evalAll(fr *frame, codes []exprCode) []Value {
	fr.in.items(len(codes))
	out := make([]Value, len(codes))
	for i, code := range codes {
		out[i] = code(fr)
	}
	return out
}

// variable compiles the reading of a name, nil for one that is not set.
func (c *compiler) variable(name string, r *region) func(fr *frame) Value {
	from := r.symbols.find(name)
	if from == nil {
		return func(fr *frame) Value { return fr.in.resolve(name) }
	}
	up, index := r.fn.depth-from.fn.depth, from.index
	if up == 0 {
		return func(fr *frame) Value { return fr.slots[index] }
	}
	return func(fr *frame) Value { return fr.up(up).slots[index] }
}

func (c *compiler) dict(n *dictExpr, r *region) exprCode {
	keys, values := c.exprs(n.keys, r), c.exprs(n.values, r)
	return func(fr *frame) Value {
		d := NewDict()
		for i := range keys {
			fr.in.set(d, keys[i](fr), values[i](fr))
		}
		return d
	}
}

func (c *compiler) cond(n *condExpr, r *region) exprCode {
	soft := r.softened()
	test, then := c.expr(n.test, soft), c.expr(n.then, soft)
	other := func(*frame) Value {
		return undefinedHint(fmt.Sprintf("the inline if-expression on line %d evaluated to false and no else section was defined.", n.line))
	}
	if n.other != nil {
		other = c.expr(n.other, soft)
	}
	return func(fr *frame) Value {
		fr.in.step(1)
		if truth(test(fr)) {
			return then(fr)
		}
		return other(fr)
	}
}

// arguments compiles the arguments of a call.
func (c *compiler) arguments(a *arguments, r *region) func(fr *frame) *callArgs {
	args := c.exprs(a.args, r)
	type kwarg struct {
		key   *Str
		value exprCode
	}
	var kwargs []kwarg
	for _, kw := range a.kwargs {
		kwargs = append(kwargs, kwarg{String(kw.name, true), c.expr(kw.value, r)})
	}
	var dynArgs, dynKwargs exprCode
	if a.dynArgs != nil {
		dynArgs = c.expr(a.dynArgs, r)
	}
	if a.dynKwargs != nil {
		dynKwargs = c.expr(a.dynKwargs, r)
	}
	return func(fr *frame) *callArgs {
		out := &callArgs{}
		if len(args) > 0 {
			out.args = evalAll(fr, args)
		}
		if dynArgs != nil {
			out.args = append(out.args, fr.in.collect(dynArgs(fr))...)
		}
		if len(kwargs) == 0 && dynKwargs == nil {
			return out
		}
		out.kw = NewDict()
		fr.in.items(3 * len(kwargs))
		for _, kw := range kwargs {
			fr.in.scan(len(kw.key.s))
			out.kw.put(stringKey(kw.key.s), kw.key, kw.value(fr))
		}
		if dynKwargs != nil {
			addKeywords(fr.in, out.kw, dynKwargs(fr))
		}
		return out
	}
}

// addKeywords adds the entries of a mapping behind ** to keyword arguments.
func addKeywords(in *interp, kw *Dict, v Value) {
	d, ok := v.(*Dict)
	if !ok {
		panic(typeErrorf("argument after ** must be a mapping, not %s", v.typeName()))
	}
	in.rehash(d)
	for _, e := range d.entries {
		if _, ok := e.key.(*Str); !ok {
			panic(typeErrorf("keywords must be strings"))
		}
		if kw.find(e.hash) >= 0 {
			panic(typeErrorf("got multiple values for keyword argument %s", in.reprText(e.key)))
		}
		kw.put(e.hash, e.key, e.value)
	}
}

func (c *compiler) call(n *callExpr, r *region) exprCode {
	args := c.arguments(&n.arguments, r)
	if attr, ok := n.node.(*getattrExpr); ok {
		return c.methodCall(attr, args, r)
	}
	f := c.expr(n.node, r)
	return func(fr *frame) Value {
		return fr.in.call(f(fr), args(fr))
	}
}

// methodCall compiles obj.name(...). It spares the bound method where obj is a
// string or a dict, as it mostly is.
func (c *compiler) methodCall(n *getattrExpr, args func(*frame) *callArgs, r *region) exprCode {
	obj, name := c.expr(n.node, r), String(n.attr, true)
	strMethod, dictMethod := strMethods[n.attr], dictMethods[n.attr]
	return func(fr *frame) Value {
		fr.in.step(2)
		v := obj(fr)
		var m method
		switch v.(type) {
		case *Str:
			m = strMethod
		case *Dict:
			m = dictMethod
		}
		if m == nil || n.attr[0] == '_' {
			return fr.in.call(fr.in.attribute(v, name), args(fr))
		}
		a := args(fr)
		a.name = n.attr
		return m(fr.in, v, a)
	}
}

// filter compiles a filter applied to an expression.
func (c *compiler) filter(n *filterExpr, r *region) exprCode {
	v := c.expr(n.node, r)
	apply := c.applyFilter(n, r)
	return func(fr *frame) Value {
		return apply(fr, v(fr))
	}
}

// blockFilter compiles a chain of filters applied to the text of a block.
func (c *compiler) blockFilter(n *filterExpr, r *region) func(fr *frame, text Value) Value {
	apply := c.applyFilter(n, r)
	if n.node == nil {
		return apply
	}
	before := c.blockFilter(n.node.(*filterExpr), r)
	return func(fr *frame, text Value) Value {
		return apply(fr, before(fr, text))
	}
}

func (c *compiler) applyFilter(n *filterExpr, r *region) func(fr *frame, v Value) Value {
	f, known := filters[n.name]
	if !known && !r.soft {
		c.fail(n.line, "%s", unknownName("filter", n.name, filters))
	}
	args := c.arguments(&n.arguments, r)
	return func(fr *frame, v Value) Value {
		fr.in.step(1)
		a := args(fr)
		if !known {
			panic(raise(classRuntime, "%s", unknownName("filter", n.name, filters)))
		}
		a.name = n.name
		return f(fr.in, v, a)
	}
}

func (c *compiler) test(n *testExpr, r *region) exprCode {
	t, known := tests[n.name]
	if !known && !r.soft {
		c.fail(n.line, "%s", unknownName("test", n.name, tests))
	}
	v, args := c.expr(n.node, r), c.arguments(&n.arguments, r)
	return func(fr *frame) Value {
		fr.in.step(1)
		x := v(fr)
		a := args(fr)
		if !known {
			panic(raise(classRuntime, "%s", unknownName("test", n.name, tests)))
		}
		a.name = n.name
		return Bool(t(fr.in, x, a))
	}
}

func (c *compiler) getitem(n *getitemExpr, r *region) exprCode {
	v := c.expr(n.node, r)
	s, isSlice := n.arg.(*sliceExpr)
	if !isSlice {
		key := c.expr(n.arg, r)
		return func(fr *frame) Value {
			fr.in.step(1)
			return fr.in.subscript(v(fr), key(fr))
		}
	}
	var parts [3]exprCode
	for i, part := range []node{s.start, s.stop, s.step} {
		parts[i] = func(*frame) Value { return None }
		if part != nil {
			parts[i] = c.expr(part, r)
		}
	}
	return func(fr *frame) Value {
		fr.in.step(1)
		obj := v(fr)
		var at [3]Value
		for i, part := range parts {
			at[i] = part(fr)
		}
		return fr.in.sliceOf(obj, at[0], at[1], at[2])
	}
}

// concat compiles ~, which joins the string forms of its operands.
func (c *compiler) concat(n *concatExpr, r *region) exprCode {
	nodes := c.exprs(n.nodes, r)
	return func(fr *frame) Value {
		in := fr.in
		in.items(len(nodes))
		parts := make([]*Str, len(nodes))
		for i, code := range nodes {
			parts[i] = in.str(code(fr))
		}
		return in.concat(parts...)
	}
}

func (c *compiler) compare(n *compareExpr, r *region) exprCode {
	first, operands := c.expr(n.first, r), c.exprs(n.operands, r)
	return func(fr *frame) Value {
		left := first(fr)
		for i, code := range operands {
			fr.in.step(1)
			right := code(fr)
			var holds bool
			switch op := n.ops[i]; op {
			case "==":
				holds = fr.in.equal(left, right)
			case "!=":
				holds = !fr.in.equal(left, right)
			case "in":
				holds = fr.in.contains(right, left)
			case "notin":
				holds = fr.in.contains(right, left)
				holds = !holds
			default:
				holds = fr.in.order(op, left, right)
			}
			if !holds {
				return Bool(false)
			}
			left = right
		}
		return Bool(true)
	}
}

func (c *compiler) binary(n *binaryExpr, r *region) exprCode {
	left, right := c.expr(n.left, r), c.expr(n.right, r)
	if n.op == "and" || n.op == "or" {
		return func(fr *frame) Value {
			fr.in.step(1)
			v := left(fr)
			if truth(v) == (n.op == "or") {
				return v
			}
			return right(fr)
		}
	}
	return func(fr *frame) Value {
		fr.in.step(1)
		return fr.in.binary(n.op, left(fr), right(fr))
	}
}
