package jinja

// scope compiles the statements of a scope within the frame of r.
func (c *compiler) scope(body []node, r *region) stmtCode {
	enter, run, leave := c.enter(r), c.block(body, r), c.leave(r)
	return func(fr *frame) (control, error) {
		enter(fr)
		ctl, err := run(fr)
		leave(fr)
		return ctl, err
	}
}

// captured compiles the statements of a scope whose text goes through a
// filter, if there is one, and then to use. A break or continue drops it.
func (c *compiler) captured(line int, body []node, filter *filterExpr, inner *region, use assigner) stmtCode {
	enter, run, leave := c.enter(inner), c.block(body, inner), c.leave(inner)
	var apply func(fr *frame, text Value) (Value, error)
	if filter != nil {
		apply = c.blockFilter(filter, inner)
	}
	return at(line, func(fr *frame) (control, error) {
		enter(fr)
		ctl := proceed
		text, err := fr.in.capture(func() (err error) {
			ctl, err = run(fr)
			return err
		})
		if err != nil || ctl != proceed {
			return ctl, err
		}
		var v Value = text
		if apply != nil {
			if v, err = apply(fr, text); err != nil {
				return proceed, err
			}
		}
		err = use(fr, v)
		leave(fr)
		return proceed, err
	})
}

func (c *compiler) assignBlock(n *assignBlockStmt, r *region) stmtCode {
	inner := r.inner()
	inner.symbols.visitAll(n.body)
	if n.filter != nil {
		inner.symbols.visit(n.filter)
	}
	target := c.target(n.target, r)
	return c.captured(n.line, n.body, n.filter, inner, func(fr *frame, v Value) error {
		if s, ok := v.(*Str); ok && fr.in.autoescape {
			v = asSafe(s)
		}
		return target(fr, v)
	})
}

func (c *compiler) filterStmt(n *filterStmt, r *region) stmtCode {
	inner := r.inner()
	inner.symbols.visitAll(n.body)
	inner.symbols.visit(n.filter)
	return c.captured(n.line, n.body, n.filter, inner, func(fr *frame, v Value) error {
		s, err := fr.in.str(v)
		if err == nil {
			fr.in.print(s)
		}
		return err
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
	return at(n.line, func(fr *frame) (control, error) {
		enter(fr)
		fr.in.step(len(values))
		for i, value := range values {
			v, err := value(fr)
			if err != nil {
				return proceed, err
			}
			if err := targets[i](fr, v); err != nil {
				return proceed, err
			}
		}
		ctl, err := run(fr)
		leave(fr)
		return ctl, err
	})
}

func (c *compiler) autoescape(n *autoescapeStmt, r *region) stmtCode {
	inner := r.inner()
	inner.symbols.visit(n.value)
	inner.symbols.visitAll(n.body)
	enter, value, run, leave := c.enter(inner), c.expr(n.value, inner), c.block(n.body, inner), c.leave(inner)
	return at(n.line, func(fr *frame) (control, error) {
		enter(fr)
		v, err := value(fr)
		if err != nil {
			return proceed, err
		}
		before := fr.in.autoescape
		fr.in.autoescape = truth(v)
		ctl, err := run(fr)
		fr.in.autoescape = before
		leave(fr)
		return ctl, err
	})
}

// loader compiles a tag that loads another template, which fails.
func (c *compiler) loader(n *loaderStmt, r *region) stmtCode {
	if n.tag == "extends" && !r.toplevel {
		c.fail(n.line, "cannot use extend from a non top-level scope")
	}
	source := c.expr(n.source, r)
	return simple(n.line, func(fr *frame) error {
		v, err := source(fr)
		if err != nil {
			return err
		}
		return typeErrorf("%s of %s: a template cannot load others", n.tag, fr.in.reprText(v))
	})
}

// blockStmt compiles the place where a block is shown.
func (c *compiler) blockStmt(n *blockStmt, r *region) stmtCode {
	block := c.blocks[n.name]
	var locals []func(ctx *nameTable, fr *frame)
	if n.scoped {
		seen := map[string]bool{}
		for s := r.symbols; s != nil; s = s.parent {
			for name := range s.stores {
				if seen[name] {
					continue
				}
				seen[name] = true
				get := c.variable(name, r)
				locals = append(locals, func(ctx *nameTable, fr *frame) {
					if v := get(fr); v != nil {
						ctx.locals[name] = v
					}
				})
			}
		}
	}
	return simple(n.line, func(fr *frame) error {
		if n.required {
			return raise(classRuntime, "Required block '%s' not found", n.name)
		}
		ctx := fr.ctx
		if n.scoped {
			ctx = fr.ctx.derive()
			fr.in.items(3 * len(locals))
			for _, add := range locals {
				add(ctx, fr)
			}
		}
		return fr.in.runBlock(block, ctx)
	})
}
