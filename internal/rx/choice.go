package rx

import (
	"cmp"
	"slices"
)

// or returns the union of the sets. It overwrites the slice.
func (s *Space) or(sets []Expr) Expr {
	if len(sets) == 2 { // the common case in derivatives
		switch a, b := sets[0], sets[1]; {
		case a == b || b == Nothing:
			return a
		case a == Nothing:
			return b
		}
	}
	args := s.flat(sets, opOr)
	if slices.Contains(args, Anything) {
		return Anything
	}
	args = slices.DeleteFunc(args, func(e Expr) bool { return e == Nothing })
	args = s.deny(args, s.and)
	if slices.Contains(args, Anything) {
		return Anything
	}
	args = s.factor(args)
	if s.err != nil {
		return Nothing
	}
	return s.list(opOr, Nothing, args)
}

// and returns the intersection of the sets. It overwrites the slice.
func (s *Space) and(sets []Expr) Expr {
	if len(sets) == 2 && sets[0] == sets[1] {
		return sets[0]
	}
	args := s.flat(sets, opAnd)
	if slices.Contains(args, Nothing) {
		return Nothing
	}
	args = slices.DeleteFunc(args, func(e Expr) bool { return e == Anything })
	if slices.Contains(args, Empty) {
		for _, e := range args {
			if !s.nodes[e].nullable {
				return Nothing
			}
		}
		return Empty
	}
	args = s.deny(args, s.or)
	if slices.Contains(args, Nothing) {
		return Nothing
	}
	args = s.meet(args)
	if s.err != nil || slices.Contains(args, Nothing) {
		return Nothing
	}
	return s.list(opAnd, Anything, args)
}

// list returns the node of args, which are simplified, or none if there are no args.
func (s *Space) list(o op, none Expr, args []Expr) Expr {
	switch len(args) {
	case 0:
		return none
	case 1:
		return args[0]
	}
	n := node{op: o, args: args, nullable: o == opAnd, plain: o == opOr}
	for _, e := range args {
		arg := &s.nodes[e]
		n.height = max(n.height, arg.height)
		if o == opAnd {
			n.nullable = n.nullable && arg.nullable
		} else {
			n.nullable = n.nullable || arg.nullable
			n.plain = n.plain && arg.plain
		}
	}
	n.height++
	return s.intern(n)
}

// flat replaces sets that are nodes of operation o by their arguments, and returns the result
// sorted and without duplicates.
func (s *Space) flat(sets []Expr, o op) []Expr {
	args := sets
	for i := 0; i < len(sets); i++ {
		if n := &s.nodes[sets[i]]; n.op == o {
			if len(args) == len(sets) {
				args = slices.Clone(sets)
			}
			args[i] = n.args[0]
			args = append(args, n.args[1:]...)
		}
	}
	s.spend(len(args))
	slices.Sort(args)
	return slices.Compact(args)
}

// deny merges all complements among args into one: the complement of their combination. If args
// contains a set and its complement, it returns combine(nil) alone.
func (s *Space) deny(args []Expr, combine func([]Expr) Expr) []Expr {
	rest := args[:0]
	var denied []Expr
	for _, e := range args {
		if n := &s.nodes[e]; n.op == opNot && e != Anything {
			denied = append(denied, n.a)
		} else {
			rest = append(rest, e)
		}
	}
	if len(denied) == 0 {
		return rest
	}
	for _, e := range denied {
		if _, both := slices.BinarySearch(rest, e); both {
			return []Expr{combine(nil)}
		}
	}
	e := s.not(combine(denied))
	at, _ := slices.BinarySearch(rest, e)
	return slices.Insert(rest, at, e)
}

// A term is the sequence of head and tail.
type term struct{ head, tail Expr }

func (s *Space) term(e Expr) term {
	if n := &s.nodes[e]; n.op == opConcat {
		return term{n.a, n.b}
	}
	return term{e, Empty}
}

// factor merges alternatives: those with equal heads, and those with equal tails whose heads are
// bytes or repetitions of the same body. The result is sorted.
func (s *Space) factor(args []Expr) []Expr {
	if len(args) > 1 && s.depth < maxFactor {
		s.depth++
		args = s.factorTerms(args)
		s.depth--
	}
	nullable := false
	for _, e := range args {
		nullable = nullable || e != Empty && s.nodes[e].nullable
	}
	if nullable && len(args) > 0 && args[0] == Empty {
		args = args[1:]
	}
	return args
}

func (s *Space) factorTerms(args []Expr) []Expr {
	terms := make([]term, 0, len(args))
	hasEmpty := false
	for _, e := range args {
		if e == Empty {
			hasEmpty = true
			continue
		}
		terms = append(terms, s.term(e))
	}
	slices.SortFunc(terms, func(a, b term) int {
		return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(a.tail, b.tail))
	})
	// Merge terms with equal heads into one head before the union of the tails.
	out := terms[:0]
	for i := 0; i < len(terms); {
		j := i + 1
		for j < len(terms) && terms[j].head == terms[i].head {
			j++
		}
		t := terms[i]
		if j > i+1 {
			tails := make([]Expr, 0, j-i)
			for _, t := range terms[i:j] {
				tails = append(tails, t.tail)
			}
			t.tail = s.or(tails)
		}
		out = append(out, t)
		i = j
	}
	// Merge terms with equal tails: heads that are bytes, and repetitions of the same body.
	terms = out
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(a.tail, b.tail) })
	out = terms[:0]
	for i := 0; i < len(terms); {
		j := i + 1
		for j < len(terms) && terms[j].tail == terms[i].tail {
			j++
		}
		out = append(out, s.joinHeads(terms[i:j], hasEmpty && terms[i].tail == Empty)...)
		i = j
	}
	args = args[:0]
	for _, t := range out {
		args = append(args, s.concat(t.head, t.tail))
	}
	if hasEmpty {
		args = append(args, Empty)
	}
	// A merge may have produced a nested union, or duplicates.
	for _, e := range args {
		if s.nodes[e].op == opOr || s.nodes[e].op == opNot {
			if e == Anything {
				return []Expr{Anything}
			}
			return s.flat(args, opOr)
		}
	}
	slices.Sort(args)
	return slices.Compact(args)
}

// joinHeads merges terms that have the same tail, in place. hasEmpty says that the union also
// contains "".
func (s *Space) joinHeads(terms []term, hasEmpty bool) []term {
	if len(terms) == 1 && !hasEmpty {
		return terms
	}
	var bytes ByteSet
	first := -1 // index in out of the term whose head is bytes
	out := terms[:0]
	for _, t := range terms {
		n := &s.nodes[t.head]
		switch n.op {
		case opBytes:
			bytes = bytes.Or(s.sets[n.a])
			if first < 0 {
				first = len(out)
				out = append(out, t)
			}
		case opRepeat:
			if !s.joinCount(out, t.head, hasEmpty) {
				if hasEmpty && n.min == 1 {
					t.head = s.repeat(n.a, 0, n.max)
				}
				out = append(out, t)
			}
		default:
			out = append(out, t)
		}
	}
	if first >= 0 {
		out[first].head = s.bytes(bytes)
	}
	return out
}

// joinCount widens the repetition of one of the terms to cover the repetition e. It reports
// whether it could.
func (s *Space) joinCount(terms []term, e Expr, hasEmpty bool) bool {
	n := s.nodes[e]
	lo := n.min
	if hasEmpty && lo == 1 {
		lo = 0
	}
	for i, t := range terms {
		m := s.nodes[t.head]
		if m.op != opRepeat || m.a != n.a {
			continue
		}
		if m.max >= 0 && lo > m.max+1 || n.max >= 0 && m.min > n.max+1 {
			continue
		}
		hi := max(m.max, n.max)
		if m.max < 0 || n.max < 0 {
			hi = -1
		}
		terms[i].head = s.repeat(n.a, min(lo, m.min), hi)
		return true
	}
	return false
}

// meet merges those arguments of an intersection that begin with a single byte into one.
func (s *Space) meet(args []Expr) []Expr {
	if s.depth >= maxFactor {
		return args
	}
	bytes, count := AllBytes, 0
	var tails []Expr
	rest := args[:0:0]
	for _, e := range args {
		t := s.term(e)
		if n := &s.nodes[t.head]; n.op == opBytes {
			bytes = bytes.And(s.sets[n.a])
			tails = append(tails, t.tail)
			count++
		} else {
			rest = append(rest, e)
		}
	}
	if count < 2 {
		return args
	}
	s.depth++
	e := s.concat(s.bytes(bytes), s.and(tails))
	s.depth--
	rest = append(rest, e)
	return s.flat(rest, opAnd)
}
