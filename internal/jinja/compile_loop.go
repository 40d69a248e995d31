package jinja

// forStmt compiles a loop. Its body is a scope that is entered anew for every
// item; its condition runs in a frame of its own, for it may be asked about
// the next item while the body still works on this one.
func (c *compiler) forStmt(n *forStmt, r *region) stmtCode {
	extended := n.recursive || reads(n.body, "loop")["loop"]
	containsNode(n, func(m node) bool {
		if name, ok := m.(*nameExpr); ok && name.ctx == store && name.name == "loop" {
			c.fail(name.line, "Can't assign to special loop variable in for-loop target")
		}
		return false
	})
	inner, orElse := r.inner(), r.inner()
	if n.recursive {
		inner = r.innerFunction()
		orElse = &region{fn: inner.fn, symbols: newSymbols(r.symbols, inner.fn)}
	}
	l := &loopCode{loopSlot: -1}
	if extended {
		l.loopSlot = inner.symbols.declare("loop").index
	}
	inner.symbols.parameters(n.target)
	inner.symbols.visitAll(n.body)
	l.target = c.target(n.target, inner)
	inner.fn.loops++
	l.enter, l.body, l.leave = c.enter(inner), c.block(n.body, inner), c.leave(inner)
	inner.fn.loops--
	if n.orElse != nil {
		orElse.symbols.visitAll(n.orElse)
		l.orElse = c.scope(n.orElse, orElse)
	}
	if n.test != nil {
		test := r.innerFunction()
		test.symbols.parameters(n.target)
		test.symbols.visit(n.test)
		l.test = &loopTest{test.fn, c.enter(test), c.target(n.target, test), c.expr(n.test, test)}
	}
	iter := c.expr(n.iter, r)
	if !n.recursive {
		return at(n.line, func(fr *frame) control {
			return l.run(fr, fr, iter(fr), nil, 0)
		})
	}
	return simple(n.line, func(fr *frame) {
		v := iter(fr)
		var recurse func(v Value, depth int) *Str
		recurse = func(v Value, depth int) *Str {
			fr.in.enter()
			defer fr.in.leave()
			return fr.in.capture(func() {
				l.run(fr.in.frame(inner.fn, fr), fr, v, recurse, depth)
			})
		}
		fr.in.print(recurse(v, 0))
	})
}

type loopCode struct {
	loopSlot int // of the variable loop, or -1
	target   assigner
	enter    func(*frame)
	body     stmtCode
	leave    func(*frame)
	orElse   stmtCode  // or nil
	test     *loopTest // or nil
}

type loopTest struct {
	fn     *function
	enter  func(*frame)
	target assigner
	holds  exprCode
}

// filter iterates over the items of v for which the test holds.
func (t *loopTest) filter(outer *frame, v Value) *generator {
	next := outer.in.iterate(v)
	var fr *frame
	return outer.in.newGenerator(func() (Value, bool) {
		if fr == nil {
			fr = outer.in.frame(t.fn, outer)
			t.enter(fr)
		}
		for {
			item, ok := next()
			if !ok {
				return nil, false
			}
			t.target(fr, item)
			if truth(t.holds(fr)) {
				return item, true
			}
		}
	})
}

// run runs the loop over v in the frame fr, which is within outer.
func (l *loopCode) run(fr, outer *frame, v Value, recurse func(Value, int) *Str, depth int) control {
	if l.test != nil {
		chosen := l.test.filter(outer, v)
		v = chosen
	}
	next := fr.in.iterate(v)
	var loop *loopContext
	if l.loopSlot >= 0 {
		loop = &loopContext{iterable: v, next: next, index0: -1, recurseInto: recurse, depth0: depth}
		next = loop.advance
	}
	// A pass that break or continue cuts short does not count: the else
	// part runs unless some pass reached its end.
	finished := false
	for {
		item, ok := next()
		if !ok {
			break
		}
		fr.in.step(1)
		l.target(fr, item)
		if loop != nil {
			fr.slots[l.loopSlot] = loop
		}
		l.enter(fr)
		ctl := l.body(fr)
		if ctl == breakLoop {
			break
		}
		finished = finished || ctl == proceed
	}
	l.leave(fr)
	if !finished && l.orElse != nil {
		return l.orElse(fr)
	}
	return proceed
}

// A loopContext is the variable loop.
type loopContext struct {
	iterable      Value
	next          nextFunc
	index0        int
	size          int // valid once counted
	counted       bool
	ahead         Value // the next item, read early
	current, prev Value
	changedTo     Value
	recurseInto   func(Value, int) *Str
	depth0        int
}

func (*loopContext) typeName() string { return "LoopContext" }

// advance moves to the next item.
func (l *loopContext) advance() (Value, bool) {
	item := l.ahead
	if item == nil {
		var ok bool
		if item, ok = l.next(); !ok {
			return nil, false
		}
	}
	l.ahead = nil
	l.index0++
	l.prev, l.current = l.current, item
	return item, true
}

// peek returns the next item without moving, nil at the end.
func (l *loopContext) peek() Value {
	if l.ahead == nil {
		item, ok := l.next()
		if !ok {
			return nil
		}
		l.ahead = item
	}
	return l.ahead
}

// count is the number of items, for which an iterator is read to its end.
func (l *loopContext) count(in *interp) int {
	if l.counted {
		return l.size
	}
	n, ok := in.length(l.iterable)
	if !ok {
		rest := in.collect(&generator{next: l.next})
		n = len(rest) + l.index0 + 1
		if l.ahead != nil {
			n++
		}
		l.next = in.counted(len(rest), func(i int) Value { return rest[i] })
	}
	l.size, l.counted = n, true
	return n
}

func (l *loopContext) attr(in *interp, name string) (Value, bool) {
	switch name {
	case "index":
		return templateInt(l.index0 + 1), true
	case "index0":
		return templateInt(l.index0), true
	case "first":
		return Bool(l.index0 == 0), true
	case "last":
		return Bool(l.peek() == nil), true
	case "length", "revindex", "revindex0":
		n := l.count(in)
		switch name {
		case "revindex":
			n -= l.index0
		case "revindex0":
			n -= l.index0 + 1
		}
		return templateInt(n), true
	case "depth":
		return templateInt(l.depth0 + 1), true
	case "depth0":
		return templateInt(l.depth0), true
	case "previtem":
		if l.index0 == 0 {
			return undefinedHint("there is no previous item"), true
		}
		return l.prev, true
	case "nextitem":
		next := l.peek()
		if next == nil {
			return undefinedHint("there is no next item"), true
		}
		return next, true
	case "cycle":
		return &builtin{name: name, recv: l, call: l.cycle}, true
	case "changed":
		return &builtin{name: name, recv: l, call: l.changed}, true
	}
	return nil, false
}

func (l *loopContext) cycle(_ *interp, a *callArgs) Value {
	if len(a.args) == 0 {
		panic(typeErrorf("no items for cycling given"))
	}
	args := a.positional(1, len(a.args))
	return args[l.index0%len(args)]
}

func (l *loopContext) changed(in *interp, a *callArgs) Value {
	args := a.positional(0, len(a.args))
	now := newTuple(args...)
	if l.changedTo != nil && in.equal(l.changedTo, now) {
		return Bool(false)
	}
	l.changedTo = now
	return Bool(true)
}

// recurse renders the body of a recursive loop over other items.
func (l *loopContext) recurse(_ *interp, a *callArgs) Value {
	a.name = "loop"
	args := a.bind("iterable")
	if l.recurseInto == nil {
		panic(typeErrorf("The loop must have the 'recursive' marker to be called recursively."))
	}
	return l.recurseInto(args[0], l.depth0+1)
}
