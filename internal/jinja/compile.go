package jinja

import (
	"errors"
	"fmt"
)

// A control says how a statement ends.
type control byte

const (
	proceed control = iota
	breakLoop
	continueLoop
)

// Compiled statements and expressions.
type (
	stmtCode func(fr *frame) (control, error)
	exprCode func(fr *frame) (Value, error)
)

// A compiler turns the syntax tree into code.
type compiler struct {
	name   string
	blocks map[string]*blockCode
	err    error // the first one
}

// A region is where code is compiled: its scope and the function it is in.
type region struct {
	fn      *function
	symbols *symbols
	// toplevel says that assignments are seen by blocks.
	toplevel bool
	// soft says that an unknown filter or test fails only when it is used.
	soft bool
}

func (r *region) inner() *region {
	return &region{fn: r.fn, symbols: newSymbols(r.symbols, r.fn)}
}

// innerFunction is inner for a scope with frames of its own.
func (r *region) innerFunction() *region {
	fn := newFunction(r.fn)
	return &region{fn: fn, symbols: newSymbols(r.symbols, fn)}
}

func (r *region) softened() *region {
	c := *r
	c.soft = true
	return &c
}

func (c *compiler) fail(line int, format string, args ...any) {
	if c.err == nil {
		c.err = &SyntaxError{Name: c.name, Line: line, Message: fmt.Sprintf(format, args...)}
	}
}

// code is a compiled function without parameters.
type code struct {
	fn    *function
	enter func(*frame)
	self  *slot // of the variable self, or nil
	super *slot // of the variable super, or nil
	body  stmtCode
}

// A blockCode is a block and the line it stands on.
type blockCode struct {
	code
	node *blockStmt
}

// compile compiles a template.
func compile(name string, body []node) (*code, map[string]*blockCode, error) {
	c := &compiler{name: name, blocks: map[string]*blockCode{}}
	for _, n := range body {
		c.findBlocks(n)
	}
	root := c.function(body, true, "self")
	for _, b := range c.blocks {
		b.code = c.function(b.node.body, false, "self", "super")
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	return &root, c.blocks, nil
}

func (c *compiler) findBlocks(n node) {
	if b, ok := n.(*blockStmt); ok {
		if c.blocks[b.name] != nil {
			c.fail(b.line, "block '%s' defined twice", b.name)
		}
		c.blocks[b.name] = &blockCode{node: b}
	}
	children(n, c.findBlocks)
}

// function compiles the template or a block. Special are the variables that
// it may have.
func (c *compiler) function(body []node, toplevel bool, special ...string) code {
	fn := newFunction(nil)
	r := &region{fn: fn, symbols: newSymbols(nil, fn), toplevel: toplevel}
	out := code{fn: fn}
	used := reads(body, special...)
	if used["self"] {
		out.self = r.symbols.declare("self")
	}
	if used["super"] {
		out.super = r.symbols.declare("super")
	}
	r.symbols.visitAll(body)
	out.enter = c.enter(r)
	out.body = c.block(body, r)
	return out
}

// enter makes the code that fills the variables of a scope.
func (c *compiler) enter(r *region) func(*frame) {
	type step struct {
		to int
		loading
		up int
	}
	var steps []step
	for to, l := range r.symbols.loads {
		if l.kind == loadParameter {
			continue
		}
		s := step{to: to.index, loading: l}
		if l.kind == loadAlias {
			s.up = r.fn.depth - l.alias.fn.depth
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return func(*frame) {}
	}
	return func(fr *frame) {
		fr.in.step(len(steps))
		for i := range steps {
			switch s := &steps[i]; s.kind {
			case loadResolve:
				fr.slots[s.to] = fr.ctx.resolve(s.name)
			case loadAlias:
				fr.slots[s.to] = fr.up(s.up).slots[s.alias.index]
			case loadUndefined:
				fr.slots[s.to] = nil
			}
		}
	}
}

// leave makes the code that clears the variables of a scope whose frame goes
// on to be used.
func (c *compiler) leave(r *region) func(*frame) {
	var slots []int
	for s := range r.symbols.loads {
		slots = append(slots, s.index)
	}
	return func(fr *frame) {
		fr.in.step(len(slots))
		for _, i := range slots {
			fr.slots[i] = nil
		}
	}
}

// block compiles statements that run one after the other.
func (c *compiler) block(body []node, r *region) stmtCode {
	var list []stmtCode
	for _, n := range body {
		if s := c.stmt(n, r); s != nil {
			list = append(list, s)
		}
	}
	switch len(list) {
	case 0:
		return func(*frame) (control, error) { return proceed, nil }
	case 1:
		return list[0]
	}
	return func(fr *frame) (control, error) {
		for _, s := range list {
			if ctl, err := s(fr); err != nil || ctl != proceed {
				return ctl, err
			}
		}
		return proceed, nil
	}
}

// at wraps a statement so that errors name its line.
func at(line int, s stmtCode) stmtCode {
	return func(fr *frame) (control, error) {
		fr.in.step(1)
		ctl, err := s(fr)
		if err != nil {
			locate(err, line)
		}
		return ctl, err
	}
}

// locate gives an error the line of the innermost statement it left.
func locate(err error, line int) {
	var failed *RuntimeError
	var raised *RaiseError
	switch {
	case errors.As(err, &failed):
		if failed.Line == 0 {
			failed.Line = line
		}
	case errors.As(err, &raised):
		if raised.Line == 0 {
			raised.Line = line
		}
	}
}

// simple makes a statement of code that cannot end a loop.
func simple(line int, f func(fr *frame) error) stmtCode {
	return at(line, func(fr *frame) (control, error) { return proceed, f(fr) })
}

func (c *compiler) stmt(n node, r *region) stmtCode {
	switch n := n.(type) {
	case *outputStmt:
		return c.output(n, r)
	case *ifStmt:
		return c.ifStmt(n, r)
	case *forStmt:
		return c.forStmt(n, r)
	case *assignStmt:
		return c.assign(n, r)
	case *assignBlockStmt:
		return c.assignBlock(n, r)
	case *macroStmt:
		return c.macroStmt(n, r)
	case *callStmt:
		return c.callStmt(n, r)
	case *filterStmt:
		return c.filterStmt(n, r)
	case *withStmt:
		return c.withStmt(n, r)
	case *blockStmt:
		return c.blockStmt(n, r)
	case *autoescapeStmt:
		return c.autoescape(n, r)
	case *loaderStmt:
		return c.loader(n, r)
	case *breakStmt:
		if r.fn.loops == 0 {
			c.fail(n.line, "'break' outside loop")
		}
		return func(*frame) (control, error) { return breakLoop, nil }
	case *continueStmt:
		if r.fn.loops == 0 {
			c.fail(n.line, "'continue' not properly in loop")
		}
		return func(*frame) (control, error) { return continueLoop, nil }
	}
	panic(fmt.Sprintf("jinja: no such statement: %T", n))
}

func (c *compiler) output(n *outputStmt, r *region) stmtCode {
	parts := make([]func(fr *frame) error, len(n.nodes))
	for i, part := range n.nodes {
		if text, ok := part.(*textExpr); ok {
			parts[i] = func(fr *frame) error { fr.in.print(text.text); return nil }
			continue
		}
		value := c.expr(part, r)
		parts[i] = func(fr *frame) error {
			v, err := value(fr)
			if err != nil {
				locate(err, n.lines[i])
				return err
			}
			s, isStr := v.(*Str)
			switch {
			case fr.in.autoescape:
				s, err = fr.in.escapeValue(v)
			case !isStr:
				s, err = fr.in.str(v)
			}
			if err == nil {
				fr.in.print(s)
			}
			return err
		}
	}
	return simple(n.line, func(fr *frame) error {
		fr.in.step(len(parts))
		for _, p := range parts {
			if err := p(fr); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *compiler) ifStmt(n *ifStmt, r *region) stmtCode {
	type branch struct {
		test exprCode
		body stmtCode
	}
	soft := r.softened()
	branches := []branch{{c.expr(n.test, soft), c.block(n.body, soft)}}
	for _, e := range n.elifs {
		elif := e.(*ifStmt)
		branches = append(branches, branch{c.expr(elif.test, soft), c.block(elif.body, soft)})
	}
	otherwise := c.block(n.orElse, soft)
	return at(n.line, func(fr *frame) (control, error) {
		for i := range branches {
			fr.in.step(1)
			v, err := branches[i].test(fr)
			if err != nil {
				return proceed, err
			}
			if truth(v) {
				return branches[i].body(fr)
			}
		}
		return otherwise(fr)
	})
}

// An assigner stores a value in a target.
type assigner func(fr *frame, v Value) error

// target compiles the target of an assignment. Names at the top level of the
// template are also made known to its blocks.
func (c *compiler) target(n node, r *region) assigner {
	switch n := n.(type) {
	case *nameExpr:
		to := r.symbols.find(n.name)
		up := r.fn.depth - to.fn.depth
		if !r.toplevel {
			return func(fr *frame, v Value) error {
				fr.up(up).slots[to.index] = v
				return nil
			}
		}
		return func(fr *frame, v Value) error {
			fr.up(up).slots[to.index] = v
			fr.ctx.export(n.name, v)
			return nil
		}
	case *nsRefExpr:
		get := c.variable(n.name, r)
		key := String(n.attr, true)
		return func(fr *frame, v Value) error {
			ns, ok := get(fr).(*namespace)
			if !ok {
				return errNotNamespace()
			}
			return fr.in.set(ns.attrs, key, v)
		}
	case *tupleExpr:
		targets := make([]assigner, len(n.items))
		for i, item := range n.items {
			targets[i] = c.target(item, r)
		}
		return func(fr *frame, v Value) error {
			items, err := fr.in.unpack(v, len(targets))
			if err != nil {
				return err
			}
			for i, t := range targets {
				if err := t(fr, items[i]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	panic(fmt.Sprintf("jinja: no such target: %T", n))
}

func errNotNamespace() error {
	return raise(classRuntime, "cannot assign attribute on non-namespace object")
}

func (c *compiler) assign(n *assignStmt, r *region) stmtCode {
	value, target := c.expr(n.value, r), c.target(n.target, r)
	// Namespaces are checked before the value is computed.
	var spaces []func(*frame) Value
	containsNode(n.target, func(t node) bool {
		if ref, ok := t.(*nsRefExpr); ok {
			spaces = append(spaces, c.variable(ref.name, r))
		}
		return false
	})
	return simple(n.line, func(fr *frame) error {
		for _, get := range spaces {
			if _, ok := get(fr).(*namespace); !ok {
				return errNotNamespace()
			}
		}
		v, err := value(fr)
		if err != nil {
			return err
		}
		return target(fr, v)
	})
}
