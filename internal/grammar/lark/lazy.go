package lark

import (
	"math/bits"

	"github.com/realizar/realizar/internal/rx"
)

// A lazy lexeme ends as soon as it can. So must any lexeme that may begin at the same position, or
// a text could pass the end of the lazy lexeme as something else. This file finds the leaves that
// may begin at one position, regardless of the nesting of rules, and subtracts from them what the
// lazy ones forbid.

// A leafSet is a set of leaves, as bits.
type leafSet []uint64

func (s leafSet) add(i int) { s[i/64] |= 1 << (i % 64) }

// join adds o to s and reports whether s changed.
func (s leafSet) join(o leafSet) bool {
	changed := false
	for i, w := range o {
		changed = changed || w&^s[i] != 0
		s[i] |= w
	}
	return changed
}

func (s leafSet) each(visit func(i int)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			visit(64*i + bits.TrailingZeros64(w))
		}
	}
}

// places holds the leaves that may begin each rule and those that may follow each rule and leaf.
type places struct {
	c        *compiler
	nullable []bool
	first    []leafSet
	after    []leafSet
	follow   []leafSet // for leaves
	changed  bool
}

func (p *places) empty() leafSet { return make(leafSet, (len(p.c.leaves)+63)/64) }

// separate subtracts from the leaves what lazy ones forbid.
func (c *compiler) separate(rules []*part, start int) error {
	if len(c.leaves) > maxLeaves {
		return c.errorf(0, "the grammar has a lazy rule and %d uses of lexemes; at most %d work", len(c.leaves), maxLeaves)
	}
	p := &places{c: c, nullable: make([]bool, len(rules))}
	for range rules {
		p.first = append(p.first, p.empty())
		p.after = append(p.after, p.empty())
	}
	for range c.leaves {
		p.follow = append(p.follow, p.empty())
	}
	for p.changed = true; p.changed; {
		p.changed = false
		for i, body := range rules {
			first, null := p.begin(body)
			p.changed = p.first[i].join(first) || p.changed || null != p.nullable[i]
			p.nullable[i] = null
		}
	}
	for p.changed = true; p.changed; {
		p.changed = false
		for i, body := range rules {
			p.behind(body, p.after[i])
		}
	}
	forbidden := make([]leafSet, len(c.leaves))
	for _, place := range append(p.follow, p.first[start]) {
		lazy := p.empty()
		place.each(func(i int) {
			if c.leaves[i].lazy {
				lazy.add(i)
			}
		})
		place.each(func(i int) {
			if forbidden[i] == nil {
				forbidden[i] = p.empty()
			}
			forbidden[i].join(lazy)
		})
	}
	originals := make([]rx.Expr, len(c.leaves))
	for i, l := range c.leaves {
		originals[i] = l.expr
	}
	for i, lazy := range forbidden {
		if err := c.forbid(i, lazy, originals); err != nil {
			return err
		}
	}
	return nil
}

// forbid subtracts from leaf i the texts in which one of the lazy leaves has already ended.
func (c *compiler) forbid(i int, lazy leafSet, originals []rx.Expr) error {
	l := c.leaves[i]
	var err error
	lazy.each(func(z int) {
		if z == i || err != nil || c.s.Nullable(originals[z]) {
			return
		}
		past := c.s.Concat(originals[z], rx.Anything)
		if l.lazy { // both may end at the same byte
			past = c.s.Concat(originals[z], c.s.Bytes(rx.AllBytes), rx.Anything)
		}
		switch {
		case l.token:
			return
		case !l.symbol.IsZero():
			err = c.errorf(l.at, "a lazy rule may begin where this %%json does, and where the one ends is not known to the other; put different texts before them")
			return
		case c.s.IsEmpty(c.s.And(originals[i], past)):
			return
		}
		l.expr = c.s.And(l.expr, c.s.Not(past))
		l.size += 2 * c.leaves[z].size
		if c.s.IsEmpty(l.expr) && c.s.Err() == nil {
			err = c.errorf(l.at, "no text fits this, for a lazy rule that may begin here ends before")
		}
	})
	return err
}

// begin returns the leaves that may begin a part, and whether the part may be empty.
func (p *places) begin(n *part) (leafSet, bool) {
	first := p.empty()
	switch n.kind {
	case kindString:
		first.add(n.leaf)
		l := p.c.leaves[n.leaf]
		return first, l.symbol.IsZero() && p.c.s.Nullable(l.expr)
	case kindName:
		first.join(p.first[n.rule])
		return first, p.nullable[n.rule]
	case kindCat:
		for _, sub := range n.subs {
			f, null := p.begin(sub)
			first.join(f)
			if !null {
				return first, false
			}
		}
		return first, true
	case kindAlt:
		all := false
		for _, sub := range n.subs {
			f, null := p.begin(sub)
			first.join(f)
			all = all || null
		}
		return first, all
	}
	f, null := p.begin(n.subs[0])
	return f, null || n.low == 0
}

// behind records in the follow sets of the leaves of n that next may follow n.
func (p *places) behind(n *part, next leafSet) {
	switch n.kind {
	case kindString:
		p.changed = p.follow[n.leaf].join(next) || p.changed
	case kindName:
		p.changed = p.after[n.rule].join(next) || p.changed
	case kindCat:
		for i := len(n.subs) - 1; i >= 0; i-- {
			p.behind(n.subs[i], next)
			first, null := p.begin(n.subs[i])
			if null {
				first.join(next)
			}
			next = first
		}
	case kindAlt:
		for _, sub := range n.subs {
			p.behind(sub, next)
		}
	default:
		if n.high != 1 {
			again, _ := p.begin(n.subs[0])
			again.join(next)
			next = again
		}
		p.behind(n.subs[0], next)
	}
}
