package pattern

import (
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// repeatRest returns rest of a repetition that is not plain.
func (c *compiler) repeatRest(n *node, k vec) vec {
	sub := n.subs[0]
	if n.max >= 0 {
		x := k
		for i := n.max - 1; i >= 0 && c.err == nil; i-- {
			x = c.rest(sub, x)
			if i >= n.min {
				x = c.or(x, k)
			}
		}
		return x
	}
	var x vec
	if sub.looks {
		x = c.guarded(sub, k)
	} else {
		x = c.closure(sub, k)
	}
	for i := 0; i < n.min && c.err == nil; i++ {
		x = c.rest(sub, x)
	}
	return x
}

// closure returns rest of any number of rounds of sub, which looks only at the characters beside a
// position. Between two rounds is a position with one class before it and one after it. A matrix
// holds the texts that lead from one such pair to another; its closure describes any number of
// rounds.
func (c *compiler) closure(sub *node, k vec) vec {
	m := c.matrix(sub)
	if m == nil {
		return k
	}
	m = c.plus(m)
	size := len(c.classes)
	out := slices.Clone(k)
	for l := range size {
		for r := range size {
			for q, e := range m[l*size+r] {
				if e != rx.Nothing {
					out[l] = c.s.Or(out[l], c.s.Concat(e, c.beginningWith(q%size, k[q/size])))
				}
			}
		}
	}
	return out
}

// beginningWith returns the texts of e that begin with a character of class i. For class 0 it
// returns the empty text if e has it.
func (c *compiler) beginningWith(i int, e rx.Expr) rx.Expr {
	return c.beginning(side{c.classes[i], i == 0}, e)
}

// A matrix has a row and a column for each pair of classes around a position, the left class being
// the more significant. An entry is the texts that lead from one position to the other. The empty
// text leads only from a pair to itself.
type matrix [][]rx.Expr

func (c *compiler) zero() matrix {
	size := len(c.classes) * len(c.classes)
	m := make(matrix, size)
	for i := range m {
		m[i] = make([]rx.Expr, size)
	}
	return m
}

func (c *compiler) identity() matrix {
	m := c.zero()
	for i := range m {
		m[i][i] = rx.Empty
	}
	return m
}

// matrix returns the matrix of n, or nil if the compiler has failed.
func (c *compiler) matrix(n *node) matrix {
	if !c.step(n.at) {
		return nil
	}
	if n.plain {
		return c.plainMatrix(n)
	}
	switch n.kind {
	case kindHere:
		size := len(c.classes)
		m := c.zero()
		for i := range m {
			for _, p := range n.pairs {
				if c.holds(p.left, i/size) && c.holds(p.right, i%size) {
					m[i][i] = rx.Empty
				}
			}
		}
		return m
	case kindAlt:
		m := c.zero()
		for _, sub := range n.subs {
			m = c.sum(m, c.matrix(sub))
		}
		return m
	case kindCat:
		m := c.identity()
		for _, sub := range n.subs {
			m = c.product(m, c.matrix(sub))
		}
		return m
	}
	return c.repeatMatrix(n)
}

func (c *compiler) repeatMatrix(n *node) matrix {
	one := c.matrix(n.subs[0])
	if n.max < 0 {
		m := c.sum(c.identity(), c.plus(one))
		for range n.min {
			m = c.product(one, m)
		}
		return m
	}
	m := c.identity()
	for i := n.max - 1; i >= 0 && c.err == nil; i-- {
		m = c.product(one, m)
		if i >= n.min {
			m = c.sum(m, c.identity())
		}
	}
	return m
}

// plainMatrix splits the texts of a plain node by the classes of their first and last characters.
func (c *compiler) plainMatrix(n *node) matrix {
	size := len(c.classes)
	m := c.zero()
	for first := 1; first < size; first++ {
		for last := 1; last < size; last++ {
			e := c.between(n, first, last)
			if e == rx.Nothing {
				continue
			}
			for l := range size {
				for r := range size {
					m[l*size+first][last*size+r] = e
				}
			}
		}
	}
	if n.nullable {
		m = c.sum(m, c.identity())
	}
	return m
}

// between returns the texts of a plain node that begin with class first and end with class last.
func (c *compiler) between(n *node, first, last int) rx.Expr {
	if n.kind == kindSet {
		if first != last {
			return rx.Nothing
		}
		return c.runes(n.set.and(c.classes[first]))
	}
	e := c.s.And(c.plain(n),
		c.s.Concat(c.runes(c.classes[first]), rx.Anything),
		c.s.Concat(c.o.Any, c.runes(c.classes[last])))
	if c.s.IsEmpty(e) {
		return rx.Nothing
	}
	return e
}

func (c *compiler) sum(a, b matrix) matrix {
	if a == nil || b == nil {
		return nil
	}
	out := c.zero()
	for i := range a {
		for j := range a[i] {
			out[i][j] = c.s.Or(a[i][j], b[i][j])
		}
	}
	return out
}

func (c *compiler) product(a, b matrix) matrix {
	if a == nil || b == nil {
		return nil
	}
	out := c.zero()
	for i := range a {
		for k, left := range a[i] {
			if left == rx.Nothing || !c.step(0) {
				continue
			}
			for j, right := range b[k] {
				if right != rx.Nothing {
					out[i][j] = c.s.Or(out[i][j], c.s.Concat(left, right))
				}
			}
		}
	}
	return out
}

// plus returns the closure of m, one or more steps, by Kleene's algorithm.
func (c *compiler) plus(m matrix) matrix {
	if m == nil {
		return nil
	}
	for via := range m {
		loop := c.s.Repeat(m[via][via], 0, -1)
		next := c.zero()
		for i := range m {
			copy(next[i], m[i])
			if m[i][via] == rx.Nothing || !c.step(0) {
				continue
			}
			to := c.s.Concat(m[i][via], loop)
			for j, from := range m[via] {
				if from != rx.Nothing {
					next[i][j] = c.s.Or(m[i][j], c.s.Concat(to, from))
				}
			}
		}
		m = next
	}
	return m
}
