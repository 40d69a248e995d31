package rx

import "math"

// concat returns the concatenation of a and b.
func (s *Space) concat(a, b Expr) Expr {
	switch {
	case a == Nothing || b == Nothing || s.err != nil:
		return Nothing
	case a == Empty:
		return b
	case b == Empty:
		return a
	case a == Anything && s.nodes[b].nullable:
		return Anything
	}
	if s.nodes[a].op == opConcat {
		return s.concatParts(a, b)
	}
	if s.nodes[b].op == opConcat {
		if head := s.nodes[b].a; a == Anything && s.nodes[head].nullable {
			return s.concat(a, s.nodes[b].b)
		} else if joined, ok := s.join(a, head); ok {
			return s.concat(joined, s.nodes[b].b)
		}
	} else if joined, ok := s.join(a, b); ok {
		return joined
	}
	return s.pair(a, b)
}

// concatParts is concat for a sequence a: it prepends the parts of a to b one by one, unless
// they are too many.
func (s *Space) concatParts(a, b Expr) Expr {
	var parts []Expr
	for e := a; ; e = s.nodes[e].b {
		if s.nodes[e].op != opConcat {
			parts = append(parts, e)
			break
		}
		if len(parts) == maxFlat {
			return s.pair(a, b)
		}
		parts = append(parts, s.nodes[e].a)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if s.nodes[parts[i]].op == opConcat {
			b = s.pair(parts[i], b)
		} else {
			b = s.concat(parts[i], b)
		}
	}
	return b
}

// join returns the concatenation of a and b as one repetition, if both repeat the same body.
func (s *Space) join(a, b Expr) (Expr, bool) {
	body, n, m := s.counts(a)
	other, k, l := s.counts(b)
	if body != other || s.nodes[a].op != opRepeat && s.nodes[b].op != opRepeat {
		return 0, false
	}
	if n > math.MaxInt/4 || k > math.MaxInt/4 || m > math.MaxInt/4 || l > math.MaxInt/4 {
		return 0, false
	}
	if m < 0 || l < 0 {
		return s.repeat(body, n+k, -1), true
	}
	return s.repeat(body, n+k, m+l), true
}

// counts returns e as a repetition of a body.
func (s *Space) counts(e Expr) (body Expr, min, max int) {
	if n := &s.nodes[e]; n.op == opRepeat {
		return n.a, n.min, n.max
	}
	return e, 1, 1
}

func (s *Space) pair(a, b Expr) Expr {
	if s.err != nil {
		return Nothing
	}
	x, y := &s.nodes[a], &s.nodes[b]
	height := x.height
	if x.nullable {
		height = max(height, y.height)
	}
	return s.intern(node{op: opConcat, a: a, b: b, nullable: x.nullable && y.nullable, plain: x.plain && y.plain, height: height + 1})
}

// repeat returns the concatenations of lo to hi strings of e; hi < 0 means no upper bound.
func (s *Space) repeat(e Expr, lo, hi int) Expr {
	lo, hi = max(lo, 0), max(hi, -1)
	switch {
	case s.err != nil || hi >= 0 && hi < lo:
		return Nothing
	case hi == 0 || e == Empty:
		return Empty
	case e == Nothing && lo == 0:
		return Empty
	case e == Nothing:
		return Nothing
	case e == Anything || lo == 1 && hi == 1:
		return e
	}
	n := &s.nodes[e]
	if n.nullable {
		if lo = 0; hi == 1 {
			return e
		}
	}
	if n.op == opBytes && lo == 0 && hi < 0 && s.sets[n.a] == AllBytes {
		return Anything
	}
	if n.op == opRepeat {
		switch {
		case n.min <= 1 && n.max < 0: // x* or x+, repeated
			return s.repeat(n.a, n.min*lo, -1)
		case n.min == 0 && n.max == 1:
			return s.repeat(n.a, 0, hi)
		case lo == hi && n.max >= 0 && n.max <= math.MaxInt32 && hi <= math.MaxInt32:
			return s.repeat(n.a, n.min*lo, n.max*hi)
		}
	}
	return s.intern(node{op: opRepeat, a: e, min: lo, max: hi, nullable: lo == 0, plain: n.plain, height: n.height + 1})
}
