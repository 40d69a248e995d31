package jinja

import (
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
	stmtCode func(fr *frame) control
	exprCode func(fr *frame) Value
)

// A compiler compiles the syntax tree to code.
type compiler struct {
	name string
	err  error // the first one
}

// A region is the context of compiled code: its scope and its function.
type region struct {
	fn      *function
	symbols *symbols
	// soft says that an unknown filter or test is an error only if it runs.
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

// code is a compiled template.
type code struct {
	fn    *function
	enter func(*frame)
	body  stmtCode
}

// compile compiles a template.
func compile(name string, body []node) (*code, error) {
	c := &compiler{name: name}
	fn := newFunction(nil)
	r := &region{fn: fn, symbols: newSymbols(nil, fn)}
	r.symbols.visitAll(body)
	root := &code{fn, c.enter(r), c.block(body, r)}
	return root, c.err
}

// enter returns the code that fills the variables of a scope.
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
				fr.slots[s.to] = fr.in.resolve(s.name)
			case loadAlias:
				fr.slots[s.to] = fr.up(s.up).slots[s.alias.index]
			case loadUndefined:
				fr.slots[s.to] = nil
			}
		}
	}
}

// leave returns the code that clears the variables of a scope whose frame stays in use.
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

// block compiles statements that run in sequence.
func (c *compiler) block(body []node, r *region) stmtCode {
	var list []stmtCode
	for _, n := range body {
		if s := c.stmt(n, r); s != nil {
			list = append(list, s)
		}
	}
	switch len(list) {
	case 0:
		return func(*frame) control { return proceed }
	case 1:
		return list[0]
	}
	return func(fr *frame) control {
		for _, s := range list {
			if ctl := s(fr); ctl != proceed {
				return ctl
			}
		}
		return proceed
	}
}

// at wraps a statement so that errors name its line. After an error the line stays set.
func at(line int, s stmtCode) stmtCode {
	return func(fr *frame) control {
		fr.in.step(1)
		before := fr.in.line
		fr.in.line = line
		ctl := s(fr)
		fr.in.line = before
		return ctl
	}
}

// simple returns a statement for code that cannot end a loop.
func simple(line int, f func(fr *frame)) stmtCode {
	return at(line, func(fr *frame) control {
		f(fr)
		return proceed
	})
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
	case *breakStmt:
		if r.fn.loops == 0 {
			c.fail(n.line, "'break' outside loop")
		}
		return func(*frame) control { return breakLoop }
	case *continueStmt:
		if r.fn.loops == 0 {
			c.fail(n.line, "'continue' not properly in loop")
		}
		return func(*frame) control { return continueLoop }
	}
	panic(fmt.Sprintf("jinja: no such statement: %T", n))
}

func (c *compiler) output(n *outputStmt, r *region) stmtCode {
	parts := make([]func(fr *frame), len(n.nodes))
	for i, part := range n.nodes {
		if text, ok := part.(*textExpr); ok {
			parts[i] = func(fr *frame) { fr.in.print(text.text) }
			continue
		}
		value := c.expr(part, r)
		parts[i] = func(fr *frame) {
			fr.in.line = n.lines[i]
			v := value(fr)
			s, isStr := v.(*Str)
			if !isStr {
				s = fr.in.str(v)
			}
			fr.in.print(s)
		}
	}
	return simple(n.line, func(fr *frame) {
		fr.in.step(len(parts))
		for _, p := range parts {
			p(fr)
		}
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
	return at(n.line, func(fr *frame) control {
		for i := range branches {
			fr.in.step(1)
			if truth(branches[i].test(fr)) {
				return branches[i].body(fr)
			}
		}
		return otherwise(fr)
	})
}

// An assigner stores a value in a target.
type assigner func(fr *frame, v Value)

// target compiles the target of an assignment.
func (c *compiler) target(n node, r *region) assigner {
	switch n := n.(type) {
	case *nameExpr:
		to := r.symbols.find(n.name)
		up := r.fn.depth - to.fn.depth
		return func(fr *frame, v Value) {
			fr.up(up).slots[to.index] = v
		}
	case *nsRefExpr:
		get := c.variable(n.name, r)
		key := String(n.attr, true)
		return func(fr *frame, v Value) {
			ns, ok := get(fr).(*namespace)
			if !ok {
				panic(errNotNamespace())
			}
			fr.in.set(ns.attrs, key, v)
		}
	case *tupleExpr:
		targets := make([]assigner, len(n.items))
		for i, item := range n.items {
			targets[i] = c.target(item, r)
		}
		return func(fr *frame, v Value) {
			items := fr.in.unpack(v, len(targets))
			for i, t := range targets {
				t(fr, items[i])
			}
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
	return simple(n.line, func(fr *frame) {
		for _, get := range spaces {
			if _, ok := get(fr).(*namespace); !ok {
				panic(errNotNamespace())
			}
		}
		target(fr, value(fr))
	})
}
