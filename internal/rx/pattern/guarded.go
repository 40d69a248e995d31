package pattern

import (
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// guarded returns rest of any number of rounds of sub, which contains a lookahead of more than one
// character. sub must be one character of a set, with lookaheads before or after it. The result is
// exact if the following text cannot begin with a character of the set, because the end of the
// repetition is then certain. An example is ^((?!--).)*$.
func (c *compiler) guarded(sub *node, k vec) vec {
	if hasBehind(sub) {
		c.failBehind(sub)
		return k
	}
	before, char, after, ok := guards(sub)
	if !ok {
		c.fail(sub.at, "a lookahead of more than one character works in a repetition only beside a single character, as in ((?!--).)*; put it before the repetition")
		return k
	}
	if len(after) == 0 {
		return c.guardedChar(sub.at, before, char, k)
	}
	// (B S A)* k equals k or B S (A B S)* A k.
	x := c.guardedChar(sub.at, slices.Concat(after, before), char, c.restOf(after, k))
	return c.or(k, c.restOf(before, c.rest(char, x)))
}

// guards splits a sequence into lookaheads, a character and lookaheads.
func guards(n *node) (before []*node, char *node, after []*node, ok bool) {
	for _, sub := range flat(n) {
		switch {
		case sub.kind == kindSet && char == nil:
			char = sub
		case sub.kind != kindAhead && sub.kind != kindHere:
			return nil, nil, nil, false
		case char == nil:
			before = append(before, sub)
		default:
			after = append(after, sub)
		}
	}
	return before, char, after, char != nil
}

func (c *compiler) restOf(items []*node, k vec) vec {
	for _, n := range slices.Backward(items) {
		k = c.rest(n, k)
	}
	return k
}

// guardedChar returns rest of any number of rounds of the guards and then a character.
func (c *compiler) guardedChar(at int, guards []*node, char *node, k vec) vec {
	if k[0] == c.o.Any && k[1] == k[0] && k.uniform() {
		return k // zero rounds already allow any text
	}
	s := c.runes(char.set)
	begins := c.s.Concat(s, rx.Anything)
	for _, e := range k {
		if !c.s.IsEmpty(c.s.And(e, begins)) {
			c.fail(at, "what follows this repetition may begin as another round of it, and then its lookahead is not supported; put the lookahead before the repetition")
			return k
		}
	}
	fits := c.restOf(guards, c.same(rx.Anything))
	if !fits.uniform() || fits[0] != fits[1] {
		c.fail(at, "a lookahead in a repetition that depends on what precedes it is not supported; put it before the repetition")
		return k
	}
	all := c.s.Repeat(s, 0, -1)
	bad := c.s.Concat(all, c.s.And(begins, c.s.Not(fits[1])))
	x := c.rest(repeatNode(at, char, 0, -1), k)
	for i := range x {
		x[i] = c.s.And(x[i], c.s.Not(bad))
	}
	return x
}
