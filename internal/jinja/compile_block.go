package jinja

// scope compiles the statements of a scope within the frame of r.
func (c *compiler) scope(body []node, r *region) stmtCode {
	enter, run, leave := c.enter(r), c.block(body, r), c.leave(r)
	return func(fr *frame) control {
		enter(fr)
		ctl := run(fr)
		leave(fr)
		return ctl
	}
}

// captured compiles the statements of a scope whose text goes through a
// filter, if there is one, and then to use. A break or continue drops it.
func (c *compiler) captured(line int, body []node, filter *filterExpr, inner *region, use assigner) stmtCode {
	enter, run, leave := c.enter(inner), c.block(body, inner), c.leave(inner)
	var apply func(fr *frame, text Value) Value
	if filter != nil {
		apply = c.blockFilter(filter, inner)
	}
	return at(line, func(fr *frame) control {
		enter(fr)
		ctl := proceed
		text := fr.in.capture(func() { ctl = run(fr) })
		if ctl != proceed {
			return ctl
		}
		var v Value = text
		if apply != nil {
			v = apply(fr, text)
		}
		use(fr, v)
		leave(fr)
		return proceed
	})
}

func (c *compiler) assignBlock(n *assignBlockStmt, r *region) stmtCode {
	inner := r.inner()
	inner.symbols.visitAll(n.body)
	if n.filter != nil {
		inner.symbols.visit(n.filter)
	}
	return c.captured(n.line, n.body, n.filter, inner, c.target(n.target, r))
}

func (c *compiler) filterStmt(n *filterStmt, r *region) stmtCode {
	inner := r.inner()
	inner.symbols.visitAll(n.body)
	inner.symbols.visit(n.filter)
	return c.captured(n.line, n.body, n.filter, inner, func(fr *frame, v Value) {
		fr.in.print(fr.in.str(v))
	})
}

func (c *compiler) withStmt(n *withStmt, r *region) stmtCode {
	inner := r.inner()
	inner.symbols.visitAll(n.targets)
	inner.symbols.visitAll(n.body)
	values := make([]exprCode, len(n.values))
	targets := make([]assigner, len(n.values))
	for i := range n.values {
		values[i] = c.expr(n.values[i], r)
		targets[i] = c.target(n.targets[i], inner)
	}
	enter, run, leave := c.enter(inner), c.block(n.body, inner), c.leave(inner)
	return at(n.line, func(fr *frame) control {
		enter(fr)
		fr.in.step(len(values))
		for i, value := range values {
			targets[i](fr, value(fr))
		}
		ctl := run(fr)
		leave(fr)
		return ctl
	})
}
