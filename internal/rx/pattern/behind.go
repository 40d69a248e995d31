package pattern

import (
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// A lookbehind of more than one character is an intersection with the text before it. Only the
// outermost sequence knows all of that text.

// flat returns n as a flat sequence of nodes.
func flat(n *node) []*node {
	if n.kind != kindCat {
		return []*node{n}
	}
	var items []*node
	for _, sub := range n.subs {
		items = append(items, flat(sub)...)
	}
	return items
}

// top returns the texts of before, followed by what the items match and then by k. before starts at
// the beginning of the text.
func (c *compiler) top(before, items []*node, k vec) rx.Expr {
	if len(items) > 0 && !c.step(items[0].at) {
		return rx.Nothing
	}
	last := -1
	for i, n := range items {
		if !hasBehind(n) {
			continue
		}
		switch {
		case n.kind == kindBehind:
			last = i
			continue
		case n.kind == kindAlt:
			var parts []rx.Expr
			for _, sub := range n.subs {
				parts = append(parts, c.top(before, slices.Concat(items[:i], flat(sub), items[i+1:]), k))
			}
			return c.s.Or(parts...)
		case n.kind == kindRepeat && n.min == 0 && n.max == 1:
			with := c.top(before, slices.Concat(items[:i], flat(n.subs[0]), items[i+1:]), k)
			return c.s.Or(with, c.top(before, slices.Concat(items[:i], items[i+1:]), k))
		}
	}
	if last < 0 {
		return c.rest(catNode(0, slices.Concat(before, items)), k)[0]
	}
	if items[0].isStart() {
		return c.top(keepEmpty(before), items[1:], k)
	}
	if n := items[0]; len(before) == 0 && (n.kind == kindAhead || n.kind == kindHere) {
		return c.s.And(c.rest(n, c.same(rx.Anything))[0], c.top(nil, items[1:], k))
	}
	n := items[last]
	if slices.ContainsFunc(items[:last], looksAhead) || looksAhead(n.subs[0]) {
		c.fail(n.at, "a lookbehind of more than one character cannot follow or hold a lookahead, a $ or a word boundary, but for lookaheads at the beginning of the pattern behind ^")
		return rx.Nothing
	}
	head := c.top(before, items[:last], c.same(rx.Empty))
	look := c.top([]*node{c.made(c.o.Any)}, flat(n.subs[0]), c.same(rx.Empty))
	if n.negate {
		look = c.s.Not(look)
	}
	return c.top([]*node{c.made(c.s.And(head, look))}, items[last+1:], k)
}

// isStart reports whether n asserts the beginning of the text.
func (n *node) isStart() bool {
	return n.kind == kindHere && len(n.pairs) == 1 && n.pairs[0].right.all() && n.pairs[0].left.edge && len(n.pairs[0].left.set) == 0
}

// keepEmpty returns what remains of before if the text begins after it: nothing if before can match
// the empty text, otherwise before unchanged.
func keepEmpty(before []*node) []*node {
	for _, n := range before {
		if !n.nullable {
			return before
		}
	}
	return nil
}

func hasBehind(n *node) bool {
	return n.kind == kindBehind || n.kind != kindAhead && n.looks && slices.ContainsFunc(n.subs, hasBehind)
}

// looksAhead reports whether any part of n depends on what follows it.
func looksAhead(n *node) bool {
	for _, p := range n.pairs {
		if !p.right.all() {
			return true
		}
	}
	return n.kind == kindAhead || slices.ContainsFunc(n.subs, looksAhead)
}
