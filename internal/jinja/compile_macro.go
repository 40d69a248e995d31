package jinja

// A macroCode is a compiled macro, or the body of a call block.
type macroCode struct {
	name     string // "" for a call block
	fn       *function
	params   []macroParam
	caller   *slot // of the variable caller, or nil
	kwargs   *slot
	varargs  *slot
	explicit bool // caller is one of the parameters
	enter    func(*frame)
	body     stmtCode
}

type macroParam struct {
	name     string
	slot     *slot
	absent   exprCode // the default, or nil
	undefine *undefined
}

// A macro is a macroCode with the frame it was defined in.
type macro struct {
	def   *macroCode
	outer *frame
}

func (*macro) typeName() string { return "Macro" }

func (c *compiler) macro(name string, line int, args, defaults, body []node, r *region) *macroCode {
	inner := r.innerFunction()
	analyze := func() {
		inner.symbols.visitAll(args)
		inner.symbols.visitAll(defaults)
		inner.symbols.visitAll(body)
	}
	analyze()
	m := &macroCode{name: name, fn: inner.fn}
	used := reads(body, "caller", "kwargs", "varargs")
	for i, a := range args {
		switch argName := a.(*nameExpr).name; argName {
		case "caller":
			m.explicit = true
			if used["caller"] && i < len(args)-len(defaults) {
				c.fail(line, `When defining macros or call blocks the special "caller" argument must be omitted or be given a default.`)
			}
		case "kwargs", "varargs":
			delete(used, argName)
		}
	}
	if used["caller"] && !m.explicit {
		m.caller = inner.symbols.declare("caller")
	}
	if used["kwargs"] {
		m.kwargs = inner.symbols.declare("kwargs")
	}
	if used["varargs"] {
		m.varargs = inner.symbols.declare("varargs")
	}
	analyze()
	for i, a := range args {
		argName := a.(*nameExpr).name
		p := macroParam{name: argName, slot: inner.symbols.find(argName)}
		p.undefine = &undefined{hint: "parameter '" + argName + "' was not provided", name: String(argName, true)}
		if d := i - (len(args) - len(defaults)); d >= 0 {
			p.absent = c.expr(defaults[d], inner)
		}
		m.params = append(m.params, p)
	}
	m.enter, m.body = c.enter(inner), c.block(body, inner)
	return m
}

func (c *compiler) macroStmt(n *macroStmt, r *region) stmtCode {
	def := c.macro(n.name, n.line, n.args, n.defaults, n.body, r)
	target := c.target(&nameExpr{n.line, n.name, store}, r)
	return simple(n.line, func(fr *frame) {
		fr.in.items(2)
		target(fr, &macro{def, fr})
	})
}

// callStmt compiles a call block, which hands its body to a macro, and a
// generation block, which is a call block for a function that only calls it.
func (c *compiler) callStmt(n *callStmt, r *region) stmtCode {
	def := c.macro("", n.line, n.args, n.defaults, n.body, r)
	invoke := func(fr *frame, caller *macro) Value { return fr.in.call(caller, &callArgs{}) }
	if n.call != nil {
		f := c.expr(n.call.node, r)
		args := c.arguments(&n.call.arguments, r)
		invoke = func(fr *frame, caller *macro) Value {
			fv := f(fr)
			a := args(fr)
			if a.kw == nil {
				a.kw = NewDict()
			}
			if _, twice := a.kw.Get("caller"); twice {
				panic(typeErrorf("got multiple values for keyword argument 'caller'"))
			}
			a.kw.Set("caller", caller)
			return fr.in.call(fv, a)
		}
	}
	return simple(n.line, func(fr *frame) {
		fr.in.print(fr.in.str(invoke(fr, &macro{def, fr})))
	})
}

// call runs the macro: arguments by position, then by name, then defaults.
func (m *macro) call(in *interp, a *callArgs) Value {
	in.enter()
	defer in.leave()
	def := m.def
	fr := in.frame(def.fn, m.outer)
	kw := NewDict()
	if a.kw != nil {
		kw = in.clone(a.kw)
	}
	gotCaller := def.explicit && len(a.args) >= len(def.params)
	for i, p := range def.params {
		if i < len(a.args) {
			fr.slots[p.slot.index] = a.args[i]
			continue
		}
		if p.name == "caller" {
			gotCaller = true
		}
		if v, ok := in.remove(kw, p.name); ok {
			fr.slots[p.slot.index] = v
		}
	}
	if def.caller != nil && !gotCaller {
		v, ok := in.remove(kw, "caller")
		if !ok || v == None {
			v = &undefined{hint: "No caller defined", name: String("caller", true)}
		}
		fr.slots[def.caller.index] = v
	}
	if def.kwargs != nil {
		fr.slots[def.kwargs.index] = kw
	} else if kw.Len() > 0 {
		if _, ok := kw.Get("caller"); ok {
			panic(typeErrorf("macro '%s' was invoked with two values for the special caller argument. This is most likely a bug.", def.name))
		}
		panic(typeErrorf("macro '%s' takes no keyword argument %s", def.name, in.reprText(kw.entries[0].key)))
	}
	if rest := a.args[min(len(def.params), len(a.args)):]; def.varargs != nil {
		fr.slots[def.varargs.index] = newTuple(rest...)
	} else if len(rest) > 0 {
		panic(typeErrorf("macro '%s' takes not more than %d argument(s)", def.name, len(def.params)))
	}
	return in.capture(func() {
		def.enter(fr)
		for _, p := range def.params {
			if fr.slots[p.slot.index] != nil {
				continue
			}
			fr.slots[p.slot.index] = p.undefine
			if p.absent != nil {
				fr.slots[p.slot.index] = nil
				fr.slots[p.slot.index] = p.absent(fr)
			}
		}
		def.body(fr)
	})
}
