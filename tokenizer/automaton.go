package tokenizer

// automaton finds, for every position of a text, the longest of a set of patterns that begins there,
// in time linear in the text. It is the automaton of Aho and Corasick ("Efficient string matching",
// 1975) over the reversed patterns: reading the text backwards, the state after reading the byte at i
// knows every pattern that begins at i.
type automaton struct {
	root     [256]int32 // transitions of node 0
	nodes    []node
	patterns []prefixes // by number
}

// prefixes links a pattern to the patterns that are its proper prefixes: all shorter patterns that
// begin at the same position.
type prefixes struct {
	length  int
	shorter int32 // the longest proper prefix, -1 for none
	jump    int32 // a pattern further down the list that shorter forms, or -1 at its end
	depth   int32 // length of the list
}

// node is a state: a suffix shared by some patterns. Its transitions are a list, since most states
// have one. The root has a table, since most of a text is read there.
type node struct {
	child, sibling int32 // first transition, and the next one of the parent; 0 ends a list
	fail           int32 // the longest proper prefix of this reversed string that is also a state
	longest        int32 // the longest pattern that begins here, -1 for none
	label          byte
}

// newAutomaton returns an automaton for patterns, none of them empty. Of two equal patterns it
// finds the first.
func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: []node{{longest: -1}}, patterns: make([]prefixes, len(patterns))}
	for p, pattern := range patterns {
		a.patterns[p] = prefixes{length: len(pattern), shorter: -1, jump: -1}
		at := int32(0)
		for i := len(pattern) - 1; i >= 0; i-- {
			next := a.child(at, pattern[i])
			if next == 0 {
				next = int32(len(a.nodes))
				a.nodes = append(a.nodes, node{sibling: a.nodes[at].child, longest: -1, label: pattern[i]})
				a.nodes[at].child = next
				if at == 0 {
					a.root[pattern[i]] = next
				}
			}
			at = next
		}
		if a.nodes[at].longest < 0 {
			a.nodes[at].longest = int32(p)
		}
	}
	// Breadth first, so that the target of a failure link is complete before it is used.
	queue := make([]int32, 0, len(a.nodes))
	for c := a.nodes[0].child; c != 0; c = a.nodes[c].sibling {
		queue = append(queue, c)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
			fail := a.step(a.nodes[at].fail, a.nodes[c].label)
			a.nodes[c].fail = fail
			if p := a.nodes[c].longest; p < 0 {
				a.nodes[c].longest = a.nodes[fail].longest
			} else if shorter := a.nodes[fail].longest; shorter >= 0 {
				a.link(p, shorter)
			}
			queue = append(queue, c)
		}
	}
	return a
}

// link makes shorter, whose own list is complete, the longest proper prefix of p. The jumps are
// those of Myers ("An applicative random-access stack", 1983). With them, fit searches a list in
// time proportional to the logarithm of its length.
func (a *automaton) link(p, shorter int32) {
	next := &a.patterns[shorter]
	jump := shorter
	if next.jump >= 0 {
		// Two jumps of the same length are followed by one of twice that length plus one.
		if over := &a.patterns[next.jump]; over.jump >= 0 && next.depth-over.depth == over.depth-a.patterns[over.jump].depth {
			jump = over.jump
		}
	}
	a.patterns[p].shorter, a.patterns[p].jump, a.patterns[p].depth = shorter, jump, next.depth+1
}

// fit returns the longest pattern of at most n bytes that begins at p's position: p or one of its
// prefixes, or -1 for none.
func (a *automaton) fit(p int32, n int) int32 {
	for p >= 0 && a.patterns[p].length > n {
		if jump := a.patterns[p].jump; jump >= 0 && a.patterns[jump].length > n {
			p = jump
		} else {
			p = a.patterns[p].shorter
		}
	}
	return p
}

// child returns the state that follows at on b without a failure link, 0 for none.
func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.root[b]
	}
	for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
		if a.nodes[c].label == b {
			return c
		}
	}
	return 0
}

// step returns the state after reading b in state at.
func (a *automaton) step(at int32, b byte) int32 {
	for at != 0 {
		if c := a.child(at, b); c != 0 {
			return c
		}
		at = a.nodes[at].fail
	}
	return a.root[b]
}

// match is a pattern and where it begins.
type match struct {
	start   int
	pattern int32
}

// scan calls found for every position within run at which a pattern begins that ends within run,
// last position first, with the longest such pattern.
func (a *automaton) scan(w *work, text string, run region, found func(match)) {
	at := int32(0)
	for i := run.end - 1; i >= run.start; i-- {
		w.step(1)
		at = a.step(at, text[i])
		if p := a.nodes[at].longest; p >= 0 {
			found(match{i, p})
		}
	}
}
