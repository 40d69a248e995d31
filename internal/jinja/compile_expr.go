package jinja

import "fmt"

// expr compiles an expression.
func (c *compiler) expr(n node, r *region) exprCode {
	switch n := n.(type) {
	case *constExpr:
		return func(*frame) (Value, error) { return n.value, nil }
	case *textExpr:
		return func(*frame) (Value, error) { return n.text, nil }
	case *nameExpr:
		get, missing := c.variable(n.name, r), undefinedName(n.name)
		return func(fr *frame) (Value, error) {
			fr.in.step(1)
			if v := get(fr); v != nil {
				return v, nil
			}
			return missing, nil
		}
	case *tupleExpr:
		items := c.exprs(n.items, r)
		return func(fr *frame) (Value, error) {
			vs, err := evalAll(fr, items)
			return newTuple(vs...), err
		}
	case *listExpr:
		items := c.exprs(n.items, r)
		return func(fr *frame) (Value, error) {
			vs, err := evalAll(fr, items)
			return NewList(vs...), err
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
		return func(fr *frame) (Value, error) {
			fr.in.step(1)
			obj, err := v(fr)
			if err != nil {
				return nil, err
			}
			return fr.in.attribute(obj, name)
		}
	case *getitemExpr:
		return c.getitem(n, r)
	case *sliceExpr:
		// Within a tuple of subscripts; nothing here can be indexed so.
		return func(*frame) (Value, error) { return nil, typeErrorf("indices must be integers or slices, not tuple") }
	case *concatExpr:
		return c.concat(n, r)
	case *compareExpr:
		return c.compare(n, r)
	case *binaryExpr:
		return c.binary(n, r)
	case *unaryExpr:
		v := c.expr(n.node, r)
		return func(fr *frame) (Value, error) {
			fr.in.step(1)
			x, err := v(fr)
			if err != nil {
				return nil, err
			}
			if n.op == "not" {
				return Bool(!truth(x)), nil
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

func evalAll(fr *frame, codes []exprCode) ([]Value, error) {
	fr.in.items(len(codes))
	out := make([]Value, len(codes))
	for i, code := range codes {
		v, err := code(fr)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// variable compiles the reading of a name, nil for one that is not set.
func (c *compiler) variable(name string, r *region) func(fr *frame) Value {
	from := r.symbols.find(name)
	if from == nil {
		return func(fr *frame) Value { return fr.ctx.resolve(name) }
	}
	up, index := r.fn.depth-from.fn.depth, from.index
	if up == 0 {
		return func(fr *frame) Value { return fr.slots[index] }
	}
	return func(fr *frame) Value { return fr.up(up).slots[index] }
}

func (c *compiler) dict(n *dictExpr, r *region) exprCode {
	keys, values := c.exprs(n.keys, r), c.exprs(n.values, r)
	return func(fr *frame) (Value, error) {
		d := NewDict()
		for i := range keys {
			k, err := keys[i](fr)
			if err != nil {
				return nil, err
			}
			v, err := values[i](fr)
			if err != nil {
				return nil, err
			}
			if err := fr.in.set(d, k, v); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
}

func (c *compiler) cond(n *condExpr, r *region) exprCode {
	soft := r.softened()
	test, then := c.expr(n.test, soft), c.expr(n.then, soft)
	other := func(*frame) (Value, error) {
		return undefinedHint(fmt.Sprintf("the inline if-expression on line %d evaluated to false and no else section was defined.", n.line)), nil
	}
	if n.other != nil {
		other = c.expr(n.other, soft)
	}
	return func(fr *frame) (Value, error) {
		fr.in.step(1)
		v, err := test(fr)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			return then(fr)
		}
		return other(fr)
	}
}

// arguments compiles the arguments of a call.
func (c *compiler) arguments(a *arguments, r *region) func(fr *frame) (*callArgs, error) {
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
	return func(fr *frame) (*callArgs, error) {
		out := &callArgs{}
		var err error
		if len(args) > 0 {
			if out.args, err = evalAll(fr, args); err != nil {
				return nil, err
			}
		}
		if dynArgs != nil {
			v, err := dynArgs(fr)
			if err != nil {
				return nil, err
			}
			more, err := fr.in.collect(v)
			if err != nil {
				return nil, typeErrorf("argument after * must be an iterable, not %s", v.typeName())
			}
			out.args = append(out.args, more...)
		}
		if len(kwargs) == 0 && dynKwargs == nil {
			return out, nil
		}
		out.kw = NewDict()
		fr.in.items(3 * len(kwargs))
		for _, kw := range kwargs {
			v, err := kw.value(fr)
			if err != nil {
				return nil, err
			}
			fr.in.scan(len(kw.key.s))
			out.kw.put(stringKey(kw.key.s), kw.key, v)
		}
		if dynKwargs != nil {
			v, err := dynKwargs(fr)
			if err != nil {
				return nil, err
			}
			if err := addKeywords(fr.in, out.kw, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

// addKeywords adds the entries of a mapping behind ** to keyword arguments.
func addKeywords(in *interp, kw *Dict, v Value) error {
	d, ok := v.(*Dict)
	if !ok {
		return typeErrorf("argument after ** must be a mapping, not %s", v.typeName())
	}
	in.rehash(d)
	for _, e := range d.entries {
		if _, ok := e.key.(*Str); !ok {
			return typeErrorf("keywords must be strings")
		}
		if kw.find(e.hash) >= 0 {
			return typeErrorf("got multiple values for keyword argument %s", in.reprText(e.key))
		}
		kw.put(e.hash, e.key, e.value)
	}
	return nil
}

func (c *compiler) call(n *callExpr, r *region) exprCode {
	args := c.arguments(&n.arguments, r)
	if attr, ok := n.node.(*getattrExpr); ok {
		return c.methodCall(attr, args, r)
	}
	f := c.expr(n.node, r)
	return func(fr *frame) (Value, error) {
		fv, err := f(fr)
		if err != nil {
			return nil, err
		}
		a, err := args(fr)
		if err != nil {
			return nil, err
		}
		return fr.in.call(fv, a)
	}
}

// methodCall compiles obj.name(...). It spares the bound method where obj is a
// string or a dict, as it mostly is.
func (c *compiler) methodCall(n *getattrExpr, args func(*frame) (*callArgs, error), r *region) exprCode {
	obj, name := c.expr(n.node, r), String(n.attr, true)
	strMethod, dictMethod := strMethods[n.attr], dictMethods[n.attr]
	return func(fr *frame) (Value, error) {
		fr.in.step(2)
		v, err := obj(fr)
		if err != nil {
			return nil, err
		}
		var m method
		switch v.(type) {
		case *Str:
			m = strMethod
		case *Dict:
			m = dictMethod
		}
		if m == nil || n.attr[0] == '_' {
			fv, err := fr.in.attribute(v, name)
			if err != nil {
				return nil, err
			}
			a, err := args(fr)
			if err != nil {
				return nil, err
			}
			return fr.in.call(fv, a)
		}
		a, err := args(fr)
		if err != nil {
			return nil, err
		}
		a.name = n.attr
		return m(fr.in, v, a)
	}
}

// filter compiles a filter applied to an expression.
func (c *compiler) filter(n *filterExpr, r *region) exprCode {
	v := c.expr(n.node, r)
	apply := c.applyFilter(n, r)
	return func(fr *frame) (Value, error) {
		x, err := v(fr)
		if err != nil {
			return nil, err
		}
		return apply(fr, x)
	}
}

// blockFilter compiles a chain of filters applied to the text of a block.
func (c *compiler) blockFilter(n *filterExpr, r *region) func(fr *frame, text Value) (Value, error) {
	apply := c.applyFilter(n, r)
	if n.node == nil {
		return func(fr *frame, text Value) (Value, error) {
			if fr.in.autoescape {
				text = asSafe(text.(*Str))
			}
			return apply(fr, text)
		}
	}
	before := c.blockFilter(n.node.(*filterExpr), r)
	return func(fr *frame, text Value) (Value, error) {
		v, err := before(fr, text)
		if err != nil {
			return nil, err
		}
		return apply(fr, v)
	}
}

func (c *compiler) applyFilter(n *filterExpr, r *region) func(fr *frame, v Value) (Value, error) {
	f, known := filters[n.name]
	if !known && !r.soft {
		c.fail(n.line, "No filter named '%s'.", clip(n.name))
	}
	args := c.arguments(&n.arguments, r)
	return func(fr *frame, v Value) (Value, error) {
		fr.in.step(1)
		a, err := args(fr)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, raise(classRuntime, "No filter named '%s' found.", clip(n.name))
		}
		a.name = n.name
		return f(fr.in, v, a)
	}
}

func (c *compiler) test(n *testExpr, r *region) exprCode {
	t, known := tests[n.name]
	if !known && !r.soft {
		c.fail(n.line, "No test named '%s'.", clip(n.name))
	}
	v, args := c.expr(n.node, r), c.arguments(&n.arguments, r)
	return func(fr *frame) (Value, error) {
		fr.in.step(1)
		x, err := v(fr)
		if err != nil {
			return nil, err
		}
		a, err := args(fr)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, raise(classRuntime, "No test named '%s' found.", clip(n.name))
		}
		a.name = n.name
		holds, err := t(fr.in, x, a)
		return Bool(holds), err
	}
}

func (c *compiler) getitem(n *getitemExpr, r *region) exprCode {
	v := c.expr(n.node, r)
	s, isSlice := n.arg.(*sliceExpr)
	if !isSlice {
		key := c.expr(n.arg, r)
		return func(fr *frame) (Value, error) {
			fr.in.step(1)
			obj, err := v(fr)
			if err != nil {
				return nil, err
			}
			k, err := key(fr)
			if err != nil {
				return nil, err
			}
			return fr.in.subscript(obj, k)
		}
	}
	var parts [3]exprCode
	for i, part := range []node{s.start, s.stop, s.step} {
		parts[i] = func(*frame) (Value, error) { return None, nil }
		if part != nil {
			parts[i] = c.expr(part, r)
		}
	}
	return func(fr *frame) (Value, error) {
		fr.in.step(1)
		obj, err := v(fr)
		if err != nil {
			return nil, err
		}
		var at [3]Value
		for i, part := range parts {
			if at[i], err = part(fr); err != nil {
				return nil, err
			}
		}
		return fr.in.sliceOf(obj, at[0], at[1], at[2])
	}
}

// concat compiles ~, which joins the string forms of its operands.
func (c *compiler) concat(n *concatExpr, r *region) exprCode {
	nodes := c.exprs(n.nodes, r)
	return func(fr *frame) (Value, error) {
		in := fr.in
		in.items(len(nodes))
		parts := make([]*Str, len(nodes))
		markup := false
		for i, code := range nodes {
			v, err := code(fr)
			if err != nil {
				return nil, err
			}
			if in.autoescape {
				parts[i], err = in.softStr(v)
				markup = markup || err == nil && parts[i].safe
			} else {
				parts[i], err = in.str(v)
			}
			if err != nil {
				return nil, err
			}
		}
		if markup {
			for i := range parts {
				parts[i] = in.escape(parts[i])
			}
		}
		out := in.concat(parts...)
		out.safe = markup
		return out, nil
	}
}

func (c *compiler) compare(n *compareExpr, r *region) exprCode {
	first, operands := c.expr(n.first, r), c.exprs(n.operands, r)
	return func(fr *frame) (Value, error) {
		left, err := first(fr)
		if err != nil {
			return nil, err
		}
		for i, code := range operands {
			fr.in.step(1)
			right, err := code(fr)
			if err != nil {
				return nil, err
			}
			var holds bool
			switch op := n.ops[i]; op {
			case "==":
				holds = fr.in.equal(left, right)
			case "!=":
				holds = !fr.in.equal(left, right)
			case "in":
				holds, err = fr.in.contains(right, left)
			case "notin":
				holds, err = fr.in.contains(right, left)
				holds = !holds
			default:
				holds, err = fr.in.order(op, left, right)
			}
			if err != nil || !holds {
				return Bool(false), err
			}
			left = right
		}
		return Bool(true), nil
	}
}

func (c *compiler) binary(n *binaryExpr, r *region) exprCode {
	left, right := c.expr(n.left, r), c.expr(n.right, r)
	if n.op == "and" || n.op == "or" {
		return func(fr *frame) (Value, error) {
			fr.in.step(1)
			v, err := left(fr)
			if err != nil || truth(v) == (n.op == "or") {
				return v, err
			}
			return right(fr)
		}
	}
	return func(fr *frame) (Value, error) {
		fr.in.step(1)
		a, err := left(fr)
		if err != nil {
			return nil, err
		}
		b, err := right(fr)
		if err != nil {
			return nil, err
		}
		return fr.in.binary(n.op, a, b)
	}
}
