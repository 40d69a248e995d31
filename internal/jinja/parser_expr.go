package jinja

import "strings"

// expression reads an expression with conditions.
func (p *parser) expression() node {
	p.deepen()
	defer func(depth int) { p.depth = depth }(p.depth - 1)
	line := p.cur().line
	n := p.or()
	for p.skipName("if") {
		c := &condExpr{line: line, then: n, test: p.or()}
		if p.skipName("else") {
			c.other = p.expression()
		}
		n, line = c, p.cur().line
		p.deepen()
	}
	return n
}

// chain reads a sequence of operands with operators between them, which
// group from the left. Each level counts as depth, as it makes the tree
// deeper.
func (p *parser) chain(operand func() node, operator func() string) node {
	depth := p.depth
	defer func() { p.depth = depth }()
	n := operand()
	for {
		op := operator()
		if op == "" {
			return n
		}
		p.deepen()
		n = &binaryExpr{op, n, operand()}
	}
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

func (p *parser) or() node  { return p.chain(p.and, p.keyword("or")) }
func (p *parser) and() node { return p.chain(p.not, p.keyword("and")) }

func (p *parser) not() node {
	if !p.cur().isName("not") {
		return p.compare()
	}
	p.next()
	p.deepen()
	defer func() { p.depth-- }()
	return &unaryExpr{"not", p.not()}
}

func (p *parser) compare() node {
	first := p.sum()
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
				return first
			}
			return c
		}
		c.ops = append(c.ops, op)
		c.operands = append(c.operands, p.sum())
	}
}

func (p *parser) sum() node { return p.chain(p.concat, p.anyOp("+", "-")) }

func (p *parser) concat() node {
	n := p.product()
	if !p.cur().is("~") {
		return n
	}
	c := &concatExpr{nodes: []node{n}}
	for p.skipOp("~") {
		c.nodes = append(c.nodes, p.product())
	}
	return c
}

func (p *parser) product() node {
	return p.chain(p.power, p.anyOp("*", "/", "//", "%"))
}

func (p *parser) power() node {
	return p.chain(func() node { return p.unary(true) }, p.anyOp("**"))
}

func (p *parser) unary(withFilter bool) node {
	p.deepen()
	depth := p.depth - 1
	defer func() { p.depth = depth }()
	var n node
	if op := p.anyOp("-", "+")(); op != "" {
		n = &unaryExpr{op, p.unary(false)}
	} else {
		n = p.primary(false)
	}
	if n = p.postfix(n); withFilter {
		n = p.filterChain(n)
	}
	return n
}

func (p *parser) primary(namespace bool) node {
	t := p.cur()
	switch t.kind {
	case tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{Bool(true)}
		case "false", "False":
			return &constExpr{Bool(false)}
		case "none", "None":
			return &constExpr{None}
		}
		if namespace && p.skipOp(".") {
			return &nsRefExpr{t.line, t.text, p.expectName().text}
		}
		return &nameExpr{t.line, t.text, load}
	case tokString:
		var text strings.Builder
		for p.cur().kind == tokString {
			text.WriteString(p.next().text)
		}
		return &constExpr{&Str{s: text.String(), tmpl: true}}
	case tokInteger, tokFloat:
		p.next()
		return &constExpr{t.value}
	}
	switch {
	case p.skipOp("("):
		n := p.tuple(tupleOptions{parens: true})
		p.expectOp(")")
		return n
	case t.is("["):
		return p.list()
	case t.is("{"):
		return p.dict()
	}
	p.fail(t.line, "unexpected '%s'", t.describe())
	return nil
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
func (p *parser) tuple(o tupleOptions) node {
	p.deepen()
	defer func() { p.depth-- }()
	line := p.cur().line
	var items []node
	isTuple := false
	for {
		if len(items) > 0 {
			p.expectOp(",")
		}
		t := p.cur()
		if t.kind == tokVariableEnd || t.kind == tokBlockEnd || t.is(")") || o.ends != "" && t.isName(o.ends) {
			break
		}
		var n node
		switch {
		case o.simple:
			n = p.primary(o.namespace)
		case o.noCond:
			n = p.or()
		default:
			n = p.expression()
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
			return items[0]
		}
		if !o.parens {
			p.fail(p.cur().line, "Expected an expression, got '%s'", p.cur().describe())
		}
	}
	return &tupleExpr{line, items}
}

// items calls read for each of the items up to the bracket end, with commas
// between them and maybe behind the last.
func (p *parser) items(end string, read func()) {
	for first := true; !p.cur().is(end); first = false {
		if !first {
			p.expectOp(",")
			if p.cur().is(end) {
				break
			}
		}
		read()
	}
	p.expectOp(end)
}

func (p *parser) list() node {
	p.next()
	l := &listExpr{}
	p.items("]", func() { l.items = append(l.items, p.expression()) })
	return l
}

func (p *parser) dict() node {
	p.next()
	d := &dictExpr{}
	p.items("}", func() {
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
	})
	return d
}

// postfix reads the attributes, items and calls behind n.
func (p *parser) postfix(n node) node {
	for {
		t := p.cur()
		switch {
		case t.is("."), t.is("["):
			n = p.subscript(n)
		case t.is("("):
			n = p.call(n)
		default:
			return n
		}
		p.deepen()
	}
}

// filterChain reads the filters, tests and calls behind n.
func (p *parser) filterChain(n node) node {
	for {
		t := p.cur()
		switch {
		case t.is("|"):
			n = p.filters(n, false)
		case t.isName("is"):
			n = p.test(n)
		case t.is("("):
			n = p.call(n)
		default:
			return n
		}
		p.deepen()
	}
}

func (p *parser) subscript(n node) node {
	t := p.next()
	if t.is(".") {
		attr := p.next()
		switch attr.kind {
		case tokName:
			return &getattrExpr{t.line, n, attr.text}
		case tokInteger:
			return &getitemExpr{t.line, n, &constExpr{attr.value}}
		}
		p.fail(attr.line, "expected name or number")
	}
	var args []node
	for !p.cur().is("]") {
		if len(args) > 0 {
			p.expectOp(",")
		}
		args = append(args, p.subscribed())
	}
	p.expectOp("]")
	if len(args) == 1 {
		return &getitemExpr{t.line, n, args[0]}
	}
	return &getitemExpr{t.line, n, &tupleExpr{t.line, args}}
}

// subscribed reads an index or a slice.
func (p *parser) subscribed() node {
	s := &sliceExpr{}
	if !p.cur().is(":") {
		s.start = p.expression()
		if !p.cur().is(":") {
			return s.start
		}
	}
	p.next()
	if !p.cur().is(":") {
		s.stop = p.sliceEnd()
	}
	if p.skipOp(":") {
		s.step = p.sliceEnd()
	}
	return s
}

func (p *parser) sliceEnd() node {
	if p.cur().is("]") || p.cur().is(",") {
		return nil
	}
	return p.expression()
}

// arguments reads the arguments of a call.
func (p *parser) arguments() (a arguments) {
	line := p.next().line
	p.items(")", func() {
		valid := a.dynKwargs == nil
		switch {
		case p.skipOp("*"):
			valid = valid && a.dynArgs == nil
			a.dynArgs = p.expression()
		case p.skipOp("**"):
			a.dynKwargs = p.expression()
		case p.cur().kind == tokName && p.look().is("="):
			kw := keyword{name: p.next().text}
			p.next()
			kw.value = p.expression()
			for _, other := range a.kwargs {
				if other.name == kw.name {
					p.fail(line, "keyword argument repeated: %s", kw.name)
				}
			}
			a.kwargs = append(a.kwargs, kw)
		default:
			valid = valid && a.dynArgs == nil && len(a.kwargs) == 0
			a.args = append(a.args, p.expression())
		}
		if !valid {
			p.fail(line, "invalid syntax for function call expression")
		}
	})
	return a
}

func (p *parser) call(n node) node {
	return &callExpr{p.cur().line, n, p.arguments()}
}

// filters reads the filters applied to n, or to the text of a block if n is
// nil. Inline says that the first comes without a bar.
func (p *parser) filters(n node, inline bool) node {
	for inline || p.cur().is("|") {
		if !inline {
			p.next()
		}
		inline = false
		t := p.expectName()
		f := &filterExpr{line: t.line, node: n, name: t.text}
		if p.cur().is("(") {
			f.arguments = p.arguments()
		}
		n = f
		p.deepen()
	}
	return n
}

func (p *parser) test(n node) node {
	line := p.next().line
	negated := p.skipName("not")
	name := p.expectName()
	t := &testExpr{line: line, node: n, name: name.text}
	cur := p.cur()
	switch {
	case cur.is("("):
		t.arguments = p.arguments()
	case cur.isName("else", "or", "and"):
	case cur.kind == tokName, cur.kind == tokString, cur.kind == tokInteger, cur.kind == tokFloat,
		cur.is("["), cur.is("{"):
		if cur.isName("is") {
			p.fail(cur.line, "You cannot chain multiple tests with is")
		}
		t.args = []node{p.postfix(p.primary(false))}
	}
	if negated {
		return &unaryExpr{"not", t}
	}
	return t
}
