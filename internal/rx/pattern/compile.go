package pattern

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// A compiler turns a tree into an expression.
type compiler struct {
	s       *rx.Space
	text    string
	o       Options
	classes []set
	sets    map[string]rx.Expr
	plains  map[*node]rx.Expr
	steps   int
	err     error
}

// A vec is a set of texts for each class of the preceding character.
type vec []rx.Expr

func newCompiler(s *rx.Space, text string, o Options, tree *node) (*compiler, error) {
	c := &compiler{s: s, text: text, o: o, sets: map[string]rx.Expr{}, plains: map[*node]rx.Expr{}}
	if c.o.Rune == nil {
		c.o.Rune = func(ranges []rx.RuneRange) rx.Expr { return s.Runes(ranges...) }
	}
	if c.o.Any == rx.Nothing {
		c.o.Any = s.Repeat(c.runes(everything), 0, -1)
	}
	var ok bool
	if c.classes, ok = classes(tree); !ok {
		return nil, &Error{Pattern: text, Problem: fmt.Sprintf("its anchors, word boundaries and lookarounds tell more than %d classes of characters apart; use fewer different ones", maxClasses-1)}
	}
	return c, nil
}

func (c *compiler) fail(at int, format string, args ...any) {
	if c.err == nil {
		c.err = &Error{Pattern: c.text, Offset: at, Problem: fmt.Sprintf(format, args...)}
	}
}

// step counts work. It returns false if the compiler must stop.
func (c *compiler) step(at int) bool {
	if c.steps++; c.steps > maxSteps {
		c.fail(at, "the pattern is too large; use smaller counts around what looks around")
	}
	return c.err == nil
}

// whole returns the set of texts that match the tree, by the dialect's rule.
func (c *compiler) whole(tree *node) (rx.Expr, error) {
	var before []*node
	after := rx.Empty
	if c.o.Dialect == ECMA {
		before, after = []*node{c.made(c.o.Any)}, c.o.Any
	}
	e := c.top(before, flat(tree), c.same(after))
	if c.err != nil {
		return rx.Nothing, c.err
	}
	return e, nil
}

// made returns a node that matches the texts of e.
func (c *compiler) made(e rx.Expr) *node {
	return &node{kind: kindMade, expr: e, plain: true, nullable: c.s.Nullable(e)}
}

// same returns a vec with e for all classes.
func (c *compiler) same(e rx.Expr) vec {
	v := make(vec, len(c.classes))
	for i := range v {
		v[i] = e
	}
	return v
}

// uniform reports whether v is the same after every character.
func (v vec) uniform() bool {
	for _, e := range v[1:] {
		if e != v[1] {
			return false
		}
	}
	return true
}

func (c *compiler) runes(s set) rx.Expr {
	if len(s) == 0 {
		return rx.Nothing
	}
	k := s.key()
	e, ok := c.sets[k]
	if !ok {
		e = c.o.Rune(slices.Clone(s))
		c.sets[k] = e
	}
	return e
}

// plain returns the texts of a node that contains no anchors, word boundaries or lookarounds.
func (c *compiler) plain(n *node) rx.Expr {
	if e, ok := c.plains[n]; ok || !c.step(n.at) {
		return e
	}
	var e rx.Expr
	switch n.kind {
	case kindSet:
		return c.runes(n.set)
	case kindMade:
		return n.expr
	case kindRepeat:
		e = c.s.Repeat(c.plain(n.subs[0]), n.min, n.max)
	default:
		parts := make([]rx.Expr, len(n.subs))
		for i, sub := range n.subs {
			parts[i] = c.plain(sub)
		}
		if n.kind == kindCat {
			e = c.s.Concat(parts...)
		} else {
			e = c.s.Or(parts...)
		}
	}
	c.plains[n] = e
	return e
}

// rest returns the texts that begin with a match of n and continue with a text of k, for each class
// of the preceding character.
func (c *compiler) rest(n *node, k vec) vec {
	if !c.step(n.at) {
		return k
	}
	if n.plain {
		return c.plainRest(n, k)
	}
	switch n.kind {
	case kindCat:
		for _, sub := range slices.Backward(n.subs) {
			k = c.rest(sub, k)
		}
		return k
	case kindAlt:
		parts := make([]vec, len(n.subs))
		for i, sub := range n.subs {
			parts[i] = c.rest(sub, k)
		}
		return c.or(parts...)
	case kindHere:
		out := c.same(rx.Nothing)
		for _, p := range n.pairs {
			for i := range out {
				if c.holds(p.left, i) {
					out[i] = c.s.Or(out[i], c.beginning(p.right, k[i]))
				}
			}
		}
		return out
	case kindAhead:
		out := c.rest(n.subs[0], c.same(rx.Anything))
		for i := range out {
			if n.negate {
				out[i] = c.s.Not(out[i])
			}
			out[i] = c.s.And(out[i], k[i])
		}
		return out
	case kindRepeat:
		return c.repeatRest(n, k)
	}
	c.failBehind(n)
	return k
}

func (c *compiler) failBehind(n *node) {
	c.fail(n.at, "a lookbehind of more than one character works only outside of repetitions and lookaheads; write it with one character, or as a lookahead")
}

// beginning returns the texts of e whose first character the side allows.
func (c *compiler) beginning(s side, e rx.Expr) rx.Expr {
	switch {
	case s.all():
		return e
	case len(s.set) == 0 && s.edge:
		if c.s.Nullable(e) {
			return rx.Empty
		}
		return rx.Nothing
	case s.set.equal(everything): // without the edge
		return c.s.And(e, c.s.Not(rx.Empty))
	}
	begin := c.s.Concat(c.runes(s.set), rx.Anything)
	if s.edge {
		begin = c.s.Or(begin, rx.Empty)
	}
	return c.s.And(begin, e)
}

func (c *compiler) or(vecs ...vec) vec {
	out := make(vec, len(c.classes))
	parts := make([]rx.Expr, len(vecs))
	for i := range out {
		for j, v := range vecs {
			parts[j] = v[i]
		}
		out[i] = c.s.Or(parts...)
	}
	return out
}

func (c *compiler) plainRest(n *node, k vec) vec {
	if k.uniform() && (!n.nullable || k[0] == k[1]) {
		return c.same(c.s.Concat(c.plain(n), k[1]))
	}
	out := c.same(c.tail(n, k))
	if n.nullable {
		out = c.or(out, k)
	}
	return out
}

// tail returns the nonempty texts of a plain node, each followed by k for its last character.
func (c *compiler) tail(n *node, k vec) rx.Expr {
	if !c.step(n.at) {
		return rx.Nothing
	}
	if !n.nullable && k.uniform() {
		return c.s.Concat(c.plain(n), k[1])
	}
	switch n.kind {
	case kindSet:
		var parts []rx.Expr
		done := make([]bool, len(k))
		for i := range k {
			if i == 0 || done[i] || k[i] == rx.Nothing {
				continue
			}
			var of set // the classes with the same k
			for j := i; j < len(k); j++ {
				if k[j] == k[i] {
					done[j] = true
					of = append(of, c.classes[j]...)
				}
			}
			parts = append(parts, c.s.Concat(c.runes(n.set.and(of.normal())), k[i]))
		}
		return c.s.Or(parts...)
	case kindMade:
		var parts []rx.Expr
		for i := 1; i < len(k); i++ {
			last := c.s.Concat(c.o.Any, c.runes(c.classes[i]))
			parts = append(parts, c.s.Concat(c.s.And(n.expr, last), k[i]))
		}
		return c.s.Or(parts...)
	case kindAlt:
		parts := make([]rx.Expr, len(n.subs))
		for i, sub := range n.subs {
			parts[i] = c.tail(sub, k)
		}
		return c.s.Or(parts...)
	case kindCat:
		e := rx.Nothing
		for _, sub := range slices.Backward(n.subs) {
			t := c.tail(sub, k)
			if sub.nullable {
				e = c.s.Or(e, t)
			} else {
				e = t
			}
			k = c.plainRestOf(sub, t, k)
		}
		return e
	}
	// A repetition ends with its last nonempty round.
	sub, min, max := n.subs[0], n.min-1, n.max-1
	if sub.nullable || min < 0 {
		min = 0
	}
	if n.max < 0 {
		max = -1
	}
	if n.max == 0 {
		return rx.Nothing
	}
	return c.s.Concat(c.s.Repeat(c.plain(sub), min, max), c.tail(sub, k))
}

// plainRestOf returns plainRest of a node whose tail is known.
func (c *compiler) plainRestOf(n *node, tail rx.Expr, k vec) vec {
	out := c.same(tail)
	if n.nullable {
		out = c.or(out, k)
	}
	return out
}
