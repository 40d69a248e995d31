package jinja

import "strings"

// expression reads an expression with conditions.
func (p *parser) expression() (node, error) {
	if err := p.deepen(); err != nil {
		return nil, err
	}
	defer func(depth int) { p.depth = depth }(p.depth - 1)
	line := p.cur().line
	n, err := p.or()
	for err == nil && p.skipName("if") {
		c := &condExpr{line: line, then: n}
		if c.test, err = p.or(); err != nil {
			break
		}
		if p.skipName("else") {
			if c.other, err = p.expression(); err != nil {
				break
			}
		}
		n, line = c, p.cur().line
		err = p.deepen()
	}
	return n, err
}

// chain reads a sequence of operands with operators between them, which
// group from the left. Each level counts as depth, as it makes the tree
// deeper.
func (p *parser) chain(operand func() (node, error), operator func() string) (node, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	n, err := operand()
	for err == nil {
		op := operator()
		if op == "" {
			break
		}
		if err = p.deepen(); err != nil {
			break
		}
		b := &binaryExpr{op: op, left: n}
		b.right, err = operand()
		n = b
	}
	return n, err
}

// anyOp returns a function that takes one of the operators, if it comes next.
func (p *parser) anyOp(ops ...string) func() string {
	return func() string {
		for _, op := range ops {
			if p.skipOp(op) {
				return op
			}
		}
		return ""
	}
}

func (p *parser) keyword(name string) func() string {
	return func() string {
		if p.skipName(name) {
			return name
		}
		return ""
	}
}

func (p *parser) or() (node, error)  { return p.chain(p.and, p.keyword("or")) }
func (p *parser) and() (node, error) { return p.chain(p.not, p.keyword("and")) }

func (p *parser) not() (node, error) {
	if !p.cur().isName("not") {
		return p.compare()
	}
	p.next()
	if err := p.deepen(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	n, err := p.not()
	return &unaryExpr{"not", n}, err
}

func (p *parser) compare() (node, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{first: first}
	takeOp := p.anyOp("==", "!=", "<=", ">=", "<", ">")
	for {
		op := takeOp()
		switch {
		case op != "":
		case p.skipName("in"):
			op = "in"
		case p.cur().isName("not") && p.look().isName("in"):
			p.next()
			p.next()
			op = "notin"
		default:
			if len(c.ops) == 0 {
				return first, nil
			}
			return c, nil
		}
		operand, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops = append(c.ops, op)
		c.operands = append(c.operands, operand)
	}
}

func (p *parser) sum() (node, error) { return p.chain(p.concat, p.anyOp("+", "-")) }

func (p *parser) concat() (node, error) {
	n, err := p.product()
	if err != nil || !p.cur().is("~") {
		return n, err
	}
	c := &concatExpr{nodes: []node{n}}
	for p.skipOp("~") {
		if n, err = p.product(); err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

func (p *parser) product() (node, error) {
	return p.chain(p.power, p.anyOp("*", "/", "//", "%"))
}

func (p *parser) power() (node, error) {
	return p.chain(func() (node, error) { return p.unary(true) }, p.anyOp("**"))
}

func (p *parser) unary(withFilter bool) (node, error) {
	if err := p.deepen(); err != nil {
		return nil, err
	}
	depth := p.depth - 1
	defer func() { p.depth = depth }()
	var n node
	var err error
	if op := p.anyOp("-", "+")(); op != "" {
		u := &unaryExpr{op: op}
		u.node, err = p.unary(false)
		n = u
	} else {
		n, err = p.primary(false)
	}
	if err != nil {
		return nil, err
	}
	if n, err = p.postfix(n); err == nil && withFilter {
		n, err = p.filterChain(n)
	}
	return n, err
}

func (p *parser) primary(namespace bool) (node, error) {
	t := p.cur()
	switch t.kind {
	case tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{Bool(true)}, nil
		case "false", "False":
			return &constExpr{Bool(false)}, nil
		case "none", "None":
			return &constExpr{None}, nil
		}
		if namespace && p.skipOp(".") {
			attr, err := p.expectName()
			return &nsRefExpr{t.line, t.text, attr.text}, err
		}
		return &nameExpr{t.line, t.text, load}, nil
	case tokString:
		var text strings.Builder
		for p.cur().kind == tokString {
			text.WriteString(p.next().text)
		}
		return &constExpr{&Str{s: text.String(), tmpl: true}}, nil
	case tokInteger, tokFloat:
		p.next()
		return &constExpr{t.value}, nil
	}
	switch {
	case p.skipOp("("):
		n, err := p.tuple(tupleOptions{parens: true})
		if err != nil {
			return nil, err
		}
		return n, p.expectOp(")")
	case t.is("["):
		return p.list()
	case t.is("{"):
		return p.dict()
	}
	return nil, p.fail(t.line, "unexpected '%s'", t.describe())
}

// tupleOptions are the ways in which expressions with commas are read.
type tupleOptions struct {
	simple    bool   // names and literals only
	noCond    bool   // no conditional expressions
	ends      string // a name that ends the tuple
	parens    bool   // in brackets, where the tuple may be empty
	namespace bool   // attributes of namespaces are allowed
}

// tuple reads an expression, or several with commas between them.
func (p *parser) tuple(o tupleOptions) (node, error) {
	if err := p.deepen(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	line := p.cur().line
	var items []node
	isTuple := false
	for {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		t := p.cur()
		if t.kind == tokVariableEnd || t.kind == tokBlockEnd || t.is(")") || o.ends != "" && t.isName(o.ends) {
			break
		}
		var n node
		var err error
		switch {
		case o.simple:
			n, err = p.primary(o.namespace)
		case o.noCond:
			n, err = p.or()
		default:
			n, err = p.expression()
		}
		if err != nil {
			return nil, err
		}
		items = append(items, n)
		if !p.cur().is(",") {
			break
		}
		isTuple = true
		line = p.cur().line
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0], nil
		}
		if !o.parens {
			return nil, p.fail(p.cur().line, "Expected an expression, got '%s'", p.cur().describe())
		}
	}
	return &tupleExpr{line, items}, nil
}

func (p *parser) list() (node, error) {
	p.next()
	l := &listExpr{}
	for !p.cur().is("]") {
		if len(l.items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.cur().is("]") {
				break
			}
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, n)
	}
	return l, p.expectOp("]")
}

func (p *parser) dict() (node, error) {
	p.next()
	d := &dictExpr{}
	for !p.cur().is("}") {
		if len(d.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.cur().is("}") {
				break
			}
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys = append(d.keys, key)
		d.values = append(d.values, value)
	}
	return d, p.expectOp("}")
}

// postfix reads the attributes, items and calls behind n.
func (p *parser) postfix(n node) (node, error) {
	for {
		t := p.cur()
		var err error
		switch {
		case t.is("."), t.is("["):
			n, err = p.subscript(n)
		case t.is("("):
			n, err = p.call(n)
		default:
			return n, nil
		}
		if err == nil {
			err = p.deepen()
		}
		if err != nil {
			return nil, err
		}
	}
}

// filterChain reads the filters, tests and calls behind n.
func (p *parser) filterChain(n node) (node, error) {
	for {
		t := p.cur()
		var err error
		switch {
		case t.is("|"):
			n, err = p.filters(n, false)
		case t.isName("is"):
			n, err = p.test(n)
		case t.is("("):
			n, err = p.call(n)
		default:
			return n, nil
		}
		if err == nil {
			err = p.deepen()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) subscript(n node) (node, error) {
	t := p.next()
	if t.is(".") {
		attr := p.next()
		switch attr.kind {
		case tokName:
			return &getattrExpr{t.line, n, attr.text}, nil
		case tokInteger:
			return &getitemExpr{t.line, n, &constExpr{attr.value}}, nil
		}
		return nil, p.fail(attr.line, "expected name or number")
	}
	var args []node
	for !p.cur().is("]") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		arg, err := p.subscribed()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	if err := p.expectOp("]"); err != nil {
		return nil, err
	}
	if len(args) == 1 {
		return &getitemExpr{t.line, n, args[0]}, nil
	}
	return &getitemExpr{t.line, n, &tupleExpr{t.line, args}}, nil
}

// subscribed reads an index or a slice.
func (p *parser) subscribed() (node, error) {
	s := &sliceExpr{}
	var err error
	if !p.cur().is(":") {
		if s.start, err = p.expression(); err != nil {
			return nil, err
		}
		if !p.cur().is(":") {
			return s.start, nil
		}
	}
	p.next()
	if !p.cur().is(":") {
		if s.stop, err = p.sliceEnd(); err != nil {
			return nil, err
		}
	}
	if p.skipOp(":") {
		s.step, err = p.sliceEnd()
	}
	return s, err
}

func (p *parser) sliceEnd() (node, error) {
	if p.cur().is("]") || p.cur().is(",") {
		return nil, nil
	}
	return p.expression()
}

// arguments reads the arguments of a call.
func (p *parser) arguments() (a arguments, err error) {
	line := p.next().line
	invalid := func() (arguments, error) {
		return a, p.fail(line, "invalid syntax for function call expression")
	}
	for first := true; !p.cur().is(")"); first = false {
		if !first {
			if err := p.expectOp(","); err != nil {
				return a, err
			}
			if p.cur().is(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			if a.dynArgs != nil || a.dynKwargs != nil {
				return invalid()
			}
			a.dynArgs, err = p.expression()
		case p.skipOp("**"):
			if a.dynKwargs != nil {
				return invalid()
			}
			a.dynKwargs, err = p.expression()
		case p.cur().kind == tokName && p.look().is("="):
			if a.dynKwargs != nil {
				return invalid()
			}
			kw := keyword{name: p.next().text}
			p.next()
			kw.value, err = p.expression()
			for _, other := range a.kwargs {
				if other.name == kw.name {
					return a, p.fail(line, "keyword argument repeated: %s", kw.name)
				}
			}
			a.kwargs = append(a.kwargs, kw)
		default:
			if a.dynArgs != nil || a.dynKwargs != nil || len(a.kwargs) > 0 {
				return invalid()
			}
			var n node
			n, err = p.expression()
			a.args = append(a.args, n)
		}
		if err != nil {
			return a, err
		}
	}
	return a, p.expectOp(")")
}

func (p *parser) call(n node) (node, error) {
	line := p.cur().line
	a, err := p.arguments()
	return &callExpr{line, n, a}, err
}

// dotted reads the name of a filter or a test.
func (p *parser) dotted() (token, error) {
	t, err := p.expectName()
	for err == nil && p.skipOp(".") {
		var part token
		part, err = p.expectName()
		t.text += "." + part.text
	}
	return t, err
}

// filters reads the filters applied to n, or to the text of a block if n is
// nil. Inline says that the first comes without a bar.
func (p *parser) filters(n node, inline bool) (node, error) {
	for inline || p.cur().is("|") {
		if !inline {
			p.next()
		}
		inline = false
		t, err := p.dotted()
		if err != nil {
			return nil, err
		}
		f := &filterExpr{line: t.line, node: n, name: t.text}
		if p.cur().is("(") {
			if f.arguments, err = p.arguments(); err != nil {
				return nil, err
			}
		}
		n = f
		if err := p.deepen(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (p *parser) test(n node) (node, error) {
	line := p.next().line
	negated := p.skipName("not")
	name, err := p.dotted()
	if err != nil {
		return nil, err
	}
	t := &testExpr{line: line, node: n, name: name.text}
	cur := p.cur()
	switch {
	case cur.is("("):
		t.arguments, err = p.arguments()
	case cur.isName("else", "or", "and"):
	case cur.kind == tokName, cur.kind == tokString, cur.kind == tokInteger, cur.kind == tokFloat,
		cur.is("["), cur.is("{"):
		if cur.isName("is") {
			return nil, p.fail(cur.line, "You cannot chain multiple tests with is")
		}
		var arg node
		if arg, err = p.primary(false); err == nil {
			if arg, err = p.postfix(arg); err == nil {
				t.args = []node{arg}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if negated {
		return &unaryExpr{"not", t}, nil
	}
	return t, nil
}
