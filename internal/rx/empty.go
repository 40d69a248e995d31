package rx

// IsEmpty reports whether e has no string. If the space's limit does not suffice to tell,
// [Space.Err] returns an error.
func (s *Space) IsEmpty(e Expr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isEmpty(s.known(e))
}

// isEmpty searches the derivatives of e for one that is known to have a string. If there is
// none, all visited expressions are empty; else all on the path to it are not.
func (s *Space) isEmpty(e Expr) bool {
	if s.err != nil {
		return true
	}
	switch s.settle(e) {
	case empty:
		return true
	case inhabited:
		return false
	}
	type visit struct {
		e    Expr
		from int
	}
	queue := []visit{{e, -1}}
	seen := map[Expr]bool{e: true}
	for i := 0; i < len(queue); i++ {
		for rest := AllBytes; !rest.IsEmpty(); {
			d, on := s.derive(queue[i].e, rest.First())
			rest = rest.And(on.Not())
			s.spend(16)
			if s.err != nil {
				return true
			}
			if seen[d] {
				continue
			}
			switch s.settle(d) {
			case inhabited:
				for ; i >= 0; i = queue[i].from {
					s.nodes[queue[i].e].fate = inhabited
				}
				return false
			case unknown:
				seen[d] = true
				queue = append(queue, visit{d, i})
			}
		}
	}
	for _, v := range queue {
		s.nodes[v.e].fate = empty
	}
	return true
}

// settle returns what can be told of e's fate without derivatives.
func (s *Space) settle(e Expr) fate {
	n := &s.nodes[e]
	if n.fate != unknown {
		return n.fate
	}
	switch {
	case n.nullable:
		n.fate = inhabited
	case n.op == opConcat:
		n.fate = s.settleParts(e)
	case n.op == opOr:
		none := true
		for _, arg := range n.args {
			f := s.settle(arg)
			if f == inhabited {
				n.fate = inhabited
				return inhabited
			}
			none = none && f == empty
		}
		if none {
			n.fate = empty
		}
	case n.op == opAnd:
		for _, arg := range n.args {
			if s.settle(arg) == empty {
				n.fate = empty
			}
		}
	case n.op == opRepeat: // at least once, or it would be nullable
		n.fate = s.settle(n.a)
	}
	return n.fate
}

// settleParts is settle for a sequence.
func (s *Space) settleParts(e Expr) fate {
	all, length := inhabited, 0
	for ; s.nodes[e].op == opConcat; e = s.nodes[e].b {
		if length++; s.nodes[e].fate == inhabited {
			break
		}
		switch s.settle(s.nodes[e].a) {
		case empty:
			return empty
		case unknown:
			all = unknown
		}
	}
	s.spend(length)
	if s.nodes[e].op != opConcat {
		switch s.settle(e) {
		case empty:
			return empty
		case unknown:
			all = unknown
		}
	}
	return all
}
