package rx

import "slices"

// Derive returns the derivative of e by b: the strings t such that b followed by t is in e.
func (s *Space) Derive(e Expr, b byte) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, _ := s.derive(s.known(e), b)
	return d
}

// derive returns the derivative of e by b, and a set of bytes, b among them, that have the same
// derivative.
func (s *Space) derive(e Expr, b byte) (Expr, ByteSet) {
	if s.err != nil {
		return Nothing, AllBytes
	}
	n := &s.nodes[e]
	switch n.op {
	case opNothing, opEmpty:
		return Nothing, AllBytes
	case opBytes:
		if set := s.sets[n.a]; set.Has(b) {
			return Empty, set
		} else {
			return Nothing, set.Not()
		}
	case opConcat:
		if head := &s.nodes[n.a]; head.op == opBytes {
			if set := s.sets[head.a]; set.Has(b) {
				return n.b, set
			} else {
				return Nothing, set.Not()
			}
		}
	}
	if e == Anything {
		return Anything, AllBytes
	}
	if n.op == opLeaf && len(n.steps) == 0 {
		if s.deriveLeaf(e); s.err != nil {
			return Nothing, AllBytes
		}
		n = &s.nodes[e]
	}
	for i := range n.steps {
		if step := &n.steps[i]; step.on.Has(b) {
			return step.to, step.on
		}
	}
	d, on := s.deriveNew(*n, b)
	if s.err != nil {
		return Nothing, AllBytes
	}
	if s.used++; s.used > s.limit {
		return s.fail(), AllBytes
	}
	s.nodes[e].steps = append(s.nodes[e].steps, step{on, d})
	return d, on
}

func (s *Space) deriveNew(n node, b byte) (Expr, ByteSet) {
	switch n.op {
	case opConcat:
		d, on := s.derive(n.a, b)
		d = s.concat(d, n.b)
		if s.nodes[n.a].nullable {
			rest, also := s.derive(n.b, b)
			return s.or([]Expr{d, rest}), on.And(also)
		}
		return d, on
	case opOr, opAnd:
		s.spend(len(n.args))
		on := AllBytes
		var parts []Expr
		for _, arg := range n.args {
			d, also := s.derive(arg, b)
			on = on.And(also)
			if n.op == opAnd && d == Nothing {
				return Nothing, also
			}
			if n.op == opAnd || d != Nothing {
				parts = append(parts, d)
			}
		}
		if n.op == opAnd {
			return s.and(parts), on
		}
		return s.or(parts), on
	case opNot:
		d, on := s.derive(n.a, b)
		return s.not(d), on
	case opRepeat:
		d, on := s.derive(n.a, b)
		left := n.max
		if left > 0 {
			left--
		}
		return s.concat(d, s.repeat(n.a, max(n.min-1, 0), left)), on
	}
	panic("rx: no such operation")
}

// deriveLeaf computes the derivatives of a leaf by all bytes.
func (s *Space) deriveLeaf(e Expr) {
	l := s.leaves[s.nodes[e].a]
	var next []Leaf
	var steps []step
	for b := range 256 {
		to := l.Next(byte(b))
		i := slices.Index(next, to)
		if i < 0 {
			i = len(next)
			next, steps = append(next, to), append(steps, step{to: s.leaf(to)})
		}
		steps[i].on[b/64] |= 1 << (b % 64)
	}
	if s.used += len(steps); s.used > s.limit {
		s.fail()
		return
	}
	s.nodes[e].steps = steps
}
