package pattern

import "slices"

// A matcher decides whether a tree matches a text by exhaustive search, following the definitions
// of the dialects.
type matcher struct {
	text  []rune
	steps int
	seen  map[matchKey][]int
}

type matchKey struct {
	n  *node
	at int
}

// ends returns the positions at which a match of n that begins at i may end.
func (m *matcher) ends(n *node, i int) []int {
	k := matchKey{n, i}
	if out, ok := m.seen[k]; ok {
		return out
	}
	m.steps++
	out := m.find(n, i)
	slices.Sort(out)
	out = slices.Compact(out)
	m.seen[k] = out
	return out
}

func (m *matcher) find(n *node, i int) []int {
	switch n.kind {
	case kindSet:
		if i < len(m.text) && n.set.has(m.text[i]) {
			return []int{i + 1}
		}
	case kindCat:
		return m.sequence(n.subs, i)
	case kindAlt:
		var out []int
		for _, sub := range n.subs {
			out = append(out, m.ends(sub, i)...)
		}
		return out
	case kindRepeat:
		return m.repeat(n, i)
	case kindHere:
		for _, p := range n.pairs {
			left := i == 0 && p.left.edge || i > 0 && p.left.set.has(m.text[i-1])
			right := i == len(m.text) && p.right.edge || i < len(m.text) && p.right.set.has(m.text[i])
			if left && right {
				return []int{i}
			}
		}
	case kindAhead:
		if (len(m.ends(n.subs[0], i)) > 0) != n.negate {
			return []int{i}
		}
	case kindBehind:
		found := false
		for j := 0; j <= i; j++ {
			found = found || slices.Contains(m.ends(n.subs[0], j), i)
		}
		if found != n.negate {
			return []int{i}
		}
	}
	return nil
}

func (m *matcher) sequence(subs []*node, i int) []int {
	at := []int{i}
	for _, sub := range subs {
		at = m.each(sub, at)
	}
	return at
}

func (m *matcher) each(n *node, at []int) []int {
	var next []int
	for _, j := range at {
		next = append(next, m.ends(n, j)...)
	}
	slices.Sort(next)
	return slices.Compact(next)
}

func (m *matcher) repeat(n *node, i int) []int {
	at := []int{i}
	for range n.min {
		next := m.each(n.subs[0], at)
		if slices.Equal(next, at) {
			break
		}
		at = next
	}
	out := slices.Clone(at)
	rounds := n.max - n.min
	if n.max < 0 || rounds > len(m.text)+1 {
		rounds = len(m.text) + 1
	}
	for range rounds {
		at = m.each(n.subs[0], at)
		out = append(out, at...)
	}
	return out
}

// fits reports whether the tree matches the text by the dialect's rule.
func fits(tree *node, d Dialect, text string) bool {
	m := &matcher{text: []rune(text), seen: map[matchKey][]int{}}
	if d == Common {
		return slices.Contains(m.ends(tree, 0), len(m.text))
	}
	for i := range len(m.text) + 1 {
		if len(m.ends(tree, i)) > 0 {
			return true
		}
	}
	return false
}
