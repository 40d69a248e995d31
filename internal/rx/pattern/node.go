package pattern

import "github.com/realizar/realizar/internal/rx"

// A kind is the kind of a node of a pattern's tree.
type kind byte

const (
	kindSet    kind = iota // one code point of a set
	kindCat                // subs in sequence
	kindAlt                // one of subs
	kindRepeat             // subs[0], min to max times
	kindHere               // the empty text, if one of pairs holds
	kindAhead              // the empty text, if subs[0] matches the text that follows (does not, if negate)
	kindBehind             // the empty text, if subs[0] matches the text that precedes (does not, if negate)
	kindMade               // the texts of expr
)

// A node is a part of a pattern.
type node struct {
	kind     kind
	at       int // byte offset in the pattern
	set      set
	subs     []*node
	min, max int // max < 0 means no bound
	pairs    []pair
	negate   bool
	expr     rx.Expr

	plain    bool // contains no anchors, word boundaries or lookarounds
	nullable bool // of a plain node: matches the empty text
	looks    bool // contains a lookahead or lookbehind of more than one character
}

// A side is what may be beside a position: a code point of set, or if edge is set, the edge of the
// text.
type side struct {
	set  set
	edge bool
}

// A pair is what may be before and after a position.
type pair struct{ left, right side }

var anySide = side{everything, true}

// bare reports whether n is an assertion, which consumes no text.
func (n *node) bare() bool {
	return n.kind == kindHere || n.kind == kindAhead || n.kind == kindBehind
}

func (s side) not() side { return side{s.set.not(), !s.edge} }

func (s side) all() bool { return s.edge && s.set.equal(everything) }

func setNode(at int, s set) *node {
	return &node{kind: kindSet, at: at, set: s, plain: true}
}

func catNode(at int, subs []*node) *node {
	if len(subs) == 1 {
		return subs[0]
	}
	n := &node{kind: kindCat, at: at, subs: subs, plain: true, nullable: true}
	for _, s := range subs {
		n.plain = n.plain && s.plain
		n.nullable = n.nullable && s.nullable
		n.looks = n.looks || s.looks
	}
	return n
}

// altNode returns a choice of subs. It joins branches that are single characters into one set.
func altNode(at int, subs []*node) *node {
	if len(subs) == 1 {
		return subs[0]
	}
	n := &node{kind: kindAlt, at: at, subs: subs, plain: true}
	sets := make([]set, 0, len(subs))
	for _, s := range subs {
		n.plain = n.plain && s.plain
		n.nullable = n.nullable || s.nullable
		n.looks = n.looks || s.looks
		if s.kind == kindSet {
			sets = append(sets, s.set)
		}
	}
	if len(sets) == len(subs) {
		return setNode(at, set(nil).union(sets...))
	}
	return n
}

func repeatNode(at int, sub *node, min, max int) *node {
	if min == 1 && max == 1 {
		return sub
	}
	return &node{kind: kindRepeat, at: at, subs: []*node{sub}, min: min, max: max,
		plain: sub.plain, nullable: min == 0 || sub.nullable, looks: sub.looks}
}

func hereNode(at int, pairs ...pair) *node {
	return &node{kind: kindHere, at: at, pairs: pairs}
}

// lookNode returns a lookahead or lookbehind. It becomes an assertion about one character if that
// is equivalent.
func lookNode(at int, k kind, sub *node, negate bool) *node {
	if s, ok := sideOf(sub, k == kindAhead); ok {
		if negate {
			s = s.not()
		}
		if k == kindAhead {
			return hereNode(at, pair{anySide, s})
		}
		return hereNode(at, pair{s, anySide})
	}
	return &node{kind: k, at: at, subs: []*node{sub}, negate: negate, looks: true}
}

// sideOf returns the side that n asserts after a position, or before it. It returns false unless n
// is one character, the edge of the text, or a choice of these.
func sideOf(n *node, after bool) (side, bool) {
	switch n.kind {
	case kindSet:
		return side{set: n.set}, true
	case kindHere:
		if len(n.pairs) != 1 {
			return side{}, false
		}
		p := n.pairs[0]
		if after && p.left.all() {
			return p.right, true
		}
		if !after && p.right.all() {
			return p.left, true
		}
	case kindCat:
		if len(n.subs) == 1 {
			return sideOf(n.subs[0], after)
		}
	case kindAlt:
		var all side
		for _, sub := range n.subs {
			s, ok := sideOf(sub, after)
			if !ok {
				return side{}, false
			}
			all.set = all.set.union(s.set)
			all.edge = all.edge || s.edge
		}
		return all, true
	}
	return side{}, false
}
