package jinja

// target reads what an assignment or a loop assigns to.
func (p *parser) target(o tupleOptions) (node, error) {
	o.simple = true
	line := p.cur().line
	n, err := p.tuple(o)
	if err != nil {
		return nil, err
	}
	if !canAssign(n) {
		return nil, p.fail(line, "can't assign to '%s'", kindOf(n))
	}
	setAccess(n, store)
	return n, nil
}

// targetName reads a name that is assigned to.
func (p *parser) targetName() (*nameExpr, error) {
	t, err := p.expectName()
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "true", "false", "none", "True", "False", "None":
		return nil, p.fail(t.line, "can't assign to 'name'")
	}
	return &nameExpr{t.line, t.text, store}, nil
}

func canAssign(n node) bool {
	switch n := n.(type) {
	case *nameExpr, *nsRefExpr:
		return true
	case *tupleExpr:
		for _, item := range n.items {
			if !canAssign(item) {
				return false
			}
		}
		return true
	}
	return false
}

// kindOf names an expression in the message of a failed assignment.
func kindOf(n node) string {
	switch n.(type) {
	case *constExpr:
		return "const"
	case *tupleExpr:
		return "tuple"
	case *listExpr:
		return "list"
	case *dictExpr:
		return "dict"
	case *callExpr:
		return "call"
	case *getattrExpr:
		return "getattr"
	case *getitemExpr:
		return "getitem"
	}
	return "expression"
}

// setAccess marks the names in a target.
func setAccess(n node, a access) {
	switch n := n.(type) {
	case *nameExpr:
		n.ctx = a
	case *tupleExpr:
		for _, item := range n.items {
			setAccess(item, a)
		}
	}
}
