package jinja

// target reads what an assignment or a loop assigns to.
func (p *parser) target(o tupleOptions) node {
	o.simple = true
	line := p.cur().line
	n := p.tuple(o)
	if !setAccess(n, store) {
		p.fail(line, "can't assign to an expression")
	}
	return n
}

// targetName reads a name that is assigned to.
func (p *parser) targetName() *nameExpr {
	t := p.expectName()
	switch t.text {
	case "true", "false", "none", "True", "False", "None":
		p.fail(t.line, "can't assign to 'name'")
	}
	return &nameExpr{t.line, t.text, store}
}

// setAccess marks the names in a target, and reports whether it is one.
func setAccess(n node, a access) bool {
	switch n := n.(type) {
	case *nameExpr:
		n.ctx = a
	case *tupleExpr:
		for _, item := range n.items {
			if !setAccess(item, a) {
				return false
			}
		}
	case *nsRefExpr:
	default:
		return false
	}
	return true
}
