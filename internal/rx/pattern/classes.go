package pattern

// maxClasses bounds the classes of a pattern: the matrix of a loop has a row and a column for each
// pair of classes.
const maxClasses = 12

// classes partitions the code points so that each set that the tree tests beside a position
// contains all of a class or nothing of it. The first class, nil, stands for no character: the edge
// of the text.
func classes(tree *node) ([]set, bool) {
	list := []set{nil, everything}
	seen := map[string]bool{}
	var walk func(n *node) bool
	split := func(s set) bool {
		if k := s.key(); seen[k] {
			return true
		} else {
			seen[k] = true
		}
		other := s.not()
		parts := []set{nil}
		for _, c := range list[1:] {
			for _, part := range []set{c.and(s), c.and(other)} {
				if len(part) > 0 {
					parts = append(parts, part)
				}
			}
		}
		list = parts
		return len(list) <= maxClasses
	}
	walk = func(n *node) bool {
		for _, p := range n.pairs {
			if !split(p.left.set) || !split(p.right.set) {
				return false
			}
		}
		for _, sub := range n.subs {
			if !walk(sub) {
				return false
			}
		}
		return true
	}
	return list, walk(tree)
}

// holds reports whether side s allows a character of class i.
func (c *compiler) holds(s side, i int) bool {
	if i == 0 {
		return s.edge
	}
	return s.set.has(c.classes[i][0].Lo)
}
