package rx

// imports copies expressions from one space to another.
type imports struct {
	from, to *Space // locked by the caller
	made     map[Expr]Expr
}

// expr returns the copy of e. It follows sequences in a loop, as they may be long. Other
// expressions are at most maxHeight deep.
func (m *imports) expr(e Expr) Expr {
	if e <= Anything {
		return e
	}
	if made, ok := m.made[e]; ok {
		return made
	}
	var parts []Expr
	tail := e
	for m.from.nodes[tail].op == opConcat {
		if _, ok := m.made[tail]; ok {
			break
		}
		parts = append(parts, tail)
		tail = m.from.nodes[tail].b
	}
	if len(parts) == 0 {
		made := m.node(&m.from.nodes[e])
		m.made[e] = made
		return made
	}
	made := m.expr(tail)
	for i := len(parts) - 1; i >= 0; i-- {
		made = m.to.pair(m.expr(m.from.nodes[parts[i]].a), made)
		m.made[parts[i]] = made
	}
	return made
}

// node copies a node that is not a sequence.
func (m *imports) node(n *node) Expr {
	switch n.op {
	case opBytes:
		return m.to.bytes(m.from.sets[n.a])
	case opLeaf:
		return m.to.leaf(m.from.leaves[n.a])
	case opNot:
		return m.to.not(m.expr(n.a))
	case opRepeat:
		return m.to.repeat(m.expr(n.a), n.min, n.max)
	case opOr, opAnd:
		args := make([]Expr, len(n.args))
		for i, arg := range n.args {
			args[i] = m.expr(arg)
		}
		if n.op == opAnd {
			return m.to.and(args)
		}
		return m.to.or(args)
	}
	panic("rx: no such operation")
}
