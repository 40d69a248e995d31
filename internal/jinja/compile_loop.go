package jinja

// forStmt compiles a loop. Its body is a scope that is entered anew for every
// item; its condition runs in a frame of its own, for it may be asked about
// the next item while the body still works on this one.
func (c *compiler) forStmt(n *forStmt, r *region) stmtCode {
	extended := n.recursive || reads(n.body, "loop")["loop"] || containsNode(n, func(m node) bool {
		b, ok := m.(*blockStmt)
		return ok && b.scoped
	})
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
		return at(n.line, func(fr *frame) (control, error) {
			v, err := iter(fr)
			if err != nil {
				return proceed, err
			}
			return l.run(fr, fr, v, nil, 0)
		})
	}
	return simple(n.line, func(fr *frame) error {
		v, err := iter(fr)
		if err != nil {
			return err
		}
		var recurse func(v Value, depth int) (*Str, error)
		recurse = func(v Value, depth int) (*Str, error) {
			fr.in.enter()
			defer fr.in.leave()
			return fr.in.capture(func() error {
				_, err := l.run(fr.in.frame(inner.fn, fr, fr.ctx), fr, v, recurse, depth)
				return err
			})
		}
		text, err := recurse(v, 0)
		if err == nil {
			fr.in.print(text)
		}
		return err
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
func (t *loopTest) filter(outer *frame, v Value) (*generator, error) {
	next, err := outer.in.iterate(v)
	if err != nil {
		return nil, err
	}
	var fr *frame
	return outer.in.newGenerator("loop_filter", func() (Value, bool, error) {
		if fr == nil {
			fr = outer.in.frame(t.fn, outer, outer.ctx)
			t.enter(fr)
		}
		for {
			item, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := t.target(fr, item); err != nil {
				return nil, false, err
			}
			holds, err := t.holds(fr)
			if err != nil {
				return nil, false, err
			}
			if truth(holds) {
				return item, true, nil
			}
		}
	}), nil
}

// run runs the loop over v in the frame fr, which is within outer.
func (l *loopCode) run(fr, outer *frame, v Value, recurse func(Value, int) (*Str, error), depth int) (control, error) {
	if l.test != nil {
		chosen, err := l.test.filter(outer, v)
		if err != nil {
			return proceed, err
		}
		v = chosen
	}
	next, err := fr.in.iterate(v)
	if err != nil {
		return proceed, err
	}
	var loop *loopContext
	if l.loopSlot >= 0 {
		loop = &loopContext{iterable: v, next: next, index0: -1, recurseInto: recurse, depth0: depth}
		next = loop.advance
	}
	// A pass that break or continue cuts short does not count: the else
	// part runs unless some pass reached its end.
	finished := false
	for {
		item, ok, err := next()
		if err != nil {
			return proceed, err
		}
		if !ok {
			break
		}
		fr.in.step(1)
		if err := l.target(fr, item); err != nil {
			return proceed, err
		}
		if loop != nil {
			fr.slots[l.loopSlot] = loop
		}
		l.enter(fr)
		ctl, err := l.body(fr)
		if err != nil {
			return proceed, err
		}
		if ctl == breakLoop {
			break
		}
		finished = finished || ctl == proceed
	}
	l.leave(fr)
	if !finished && l.orElse != nil {
		return l.orElse(fr)
	}
	return proceed, nil
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
	recurseInto   func(Value, int) (*Str, error)
	depth0        int
}

func (*loopContext) typeName() string { return "LoopContext" }

// advance moves to the next item.
func (l *loopContext) advance() (Value, bool, error) {
	item := l.ahead
	if item == nil {
		var ok bool
		var err error
		if item, ok, err = l.next(); !ok || err != nil {
			return nil, false, err
		}
	}
	l.ahead = nil
	l.index0++
	l.prev, l.current = l.current, item
	return item, true, nil
}

// peek returns the next item without moving, nil at the end.
func (l *loopContext) peek() (Value, error) {
	if l.ahead == nil {
		item, ok, err := l.next()
		if !ok || err != nil {
			return nil, err
		}
		l.ahead = item
	}
	return l.ahead, nil
}

// count is the number of items, for which an iterator is read to its end.
func (l *loopContext) count(in *interp) (int, error) {
	if l.counted {
		return l.size, nil
	}
	n, ok := in.length(l.iterable)
	if !ok {
		rest, err := in.collect(&generator{next: l.next})
		if err != nil {
			return 0, err
		}
		n = len(rest) + l.index0 + 1
		if l.ahead != nil {
			n++
		}
		l.next = in.counted(len(rest), func(i int) Value { return rest[i] })
	}
	l.size, l.counted = n, true
	return n, nil
}

func (l *loopContext) attr(in *interp, name string) (Value, bool, error) {
	switch name {
	case "index":
		return templateInt(l.index0 + 1), true, nil
	case "index0":
		return templateInt(l.index0), true, nil
	case "first":
		return Bool(l.index0 == 0), true, nil
	case "last":
		next, err := l.peek()
		return Bool(next == nil), true, err
	case "length", "revindex", "revindex0":
		n, err := l.count(in)
		switch name {
		case "revindex":
			n -= l.index0
		case "revindex0":
			n -= l.index0 + 1
		}
		return templateInt(n), true, err
	case "depth":
		return templateInt(l.depth0 + 1), true, nil
	case "depth0":
		return templateInt(l.depth0), true, nil
	case "previtem":
		if l.index0 == 0 {
			return undefinedHint("there is no previous item"), true, nil
		}
		return l.prev, true, nil
	case "nextitem":
		next, err := l.peek()
		if next == nil {
			return undefinedHint("there is no next item"), true, err
		}
		return next, true, nil
	case "cycle":
		return &builtin{name: name, recv: l, call: l.cycle}, true, nil
	case "changed":
		return &builtin{name: name, recv: l, call: l.changed}, true, nil
	}
	return nil, false, nil
}

func (l *loopContext) cycle(_ *interp, a *callArgs) (Value, error) {
	if len(a.args) == 0 {
		return nil, typeErrorf("no items for cycling given")
	}
	args, err := a.positional(1, len(a.args))
	if err != nil {
		return nil, err
	}
	return args[l.index0%len(args)], nil
}

func (l *loopContext) changed(in *interp, a *callArgs) (Value, error) {
	args, err := a.positional(0, len(a.args))
	if err != nil {
		return nil, err
	}
	now := newTuple(args...)
	if l.changedTo != nil && in.equal(l.changedTo, now) {
		return Bool(false), nil
	}
	l.changedTo = now
	return Bool(true), nil
}

// recurse renders the body of a recursive loop over other items.
func (l *loopContext) recurse(_ *interp, a *callArgs) (Value, error) {
	a.name = "loop"
	args, err := a.bind("iterable")
	if err != nil {
		return nil, err
	}
	if l.recurseInto == nil {
		return nil, typeErrorf("The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.recurseInto(args[0], l.depth0+1)
}
