package ebnf

import "fmt"

// Endless reports a rule that matches no finite text, because each of its alternatives needs the
// rule itself.
type Endless struct {
	Rule int // index
	Name string
}

func (e *Endless) Error() string {
	return fmt.Sprintf("the rule %s never ends: each of its alternatives needs a rule that needs it again; add an alternative without that", e.Name)
}

// endless returns a reached rule that matches no finite text, or -1. It visits each node once, from
// lexemes up to the nodes that they complete.
func endless(rules []Rule, reached []bool) int {
	type place struct {
		parent *Node // nil: the body of rule
		rule   int
	}
	places := map[*Node]place{}
	missing := map[*Node]int{} // subs of a sequence not yet known to match a finite text
	uses := make([][]*Node, len(rules))
	ends := make([]bool, len(rules))
	done := map[*Node]bool{}
	var list []*Node
	var walk func(n *Node, at place)
	walk = func(n *Node, at place) {
		places[n] = at
		switch {
		case n.kind == kindLexeme, n.kind == kindSymbol, n.kind == kindRepeat && n.min == 0, n.kind == kindCat && len(n.subs) == 0:
			list = append(list, n)
		case n.kind == kindRef:
			uses[n.rule] = append(uses[n.rule], n)
		case n.kind == kindCat:
			missing[n] = len(n.subs)
		}
		for _, sub := range n.subs {
			walk(sub, place{parent: n})
		}
	}
	for i, r := range rules {
		if reached[i] {
			walk(r.Body, place{rule: i})
		}
	}
	for len(list) > 0 {
		n := list[len(list)-1]
		list = list[:len(list)-1]
		if done[n] {
			continue
		}
		done[n] = true
		at := places[n]
		switch p := at.parent; {
		case p == nil:
			ends[at.rule] = true
			list = append(list, uses[at.rule]...)
		case p.kind == kindCat:
			if missing[p]--; missing[p] == 0 {
				list = append(list, p)
			}
		default:
			list = append(list, p)
		}
	}
	for i := range rules {
		if reached[i] && !ends[i] {
			return onCircle(rules, ends, i)
		}
	}
	return -1
}

// onCircle follows rules without a finite text from i until one repeats.
func onCircle(rules []Rule, ends []bool, i int) int {
	seen := make([]bool, len(rules))
	for !seen[i] {
		seen[i] = true
		next := i
		rules[i].Body.refs(func(rule int) {
			if !ends[rule] {
				next = rule
			}
		})
		i = next
	}
	return i
}
