package tokenizer

import (
	"cmp"
	"slices"
)

// trie finds which texts of a set begin at a position. Its nodes are sorted by depth, so that the
// children of a node are adjacent.
type trie struct {
	first []int32 // the children of node n are the nodes first[n] to first[n+1]-1
	label []byte  // the byte that leads to a node, in ascending order among siblings
	value []int32 // the value of the text that ends at a node, -1 for none
	top   [256]int32
}

// entry is a text and its value, at least 0.
type entry struct {
	text  string
	value int32
}

// newTrie returns a trie of entries. If a text occurs twice, the last entry counts. It reorders
// entries.
func newTrie(entries []entry) *trie {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	type below struct{ from, to, depth int32 } // the entries that begin with the text of a node
	nodes := []below{{0, int32(len(entries)), 0}}
	t := &trie{label: []byte{0}}
	for n := 0; n < len(nodes); n++ {
		at := nodes[n]
		value := int32(-1)
		for at.from < at.to && int(at.depth) == len(entries[at.from].text) {
			value = entries[at.from].value
			at.from++
		}
		t.value = append(t.value, value)
		t.first = append(t.first, int32(len(nodes)))
		for i := at.from; i < at.to; {
			c := entries[i].text[at.depth]
			start := i
			for i < at.to && entries[i].text[at.depth] == c {
				i++
			}
			nodes = append(nodes, below{start, i, at.depth + 1})
			t.label = append(t.label, c)
		}
	}
	t.first = append(t.first, int32(len(nodes)))
	for c := range t.top {
		t.top[c] = t.child(0, byte(c))
	}
	return t
}

// next returns the node that c leads to from node, or -1.
func (t *trie) next(node int32, c byte) int32 {
	if node == 0 {
		return t.top[c]
	}
	return t.child(node, c)
}

func (t *trie) child(node int32, c byte) int32 {
	low, high := t.first[node], t.first[node+1]
	for low < high {
		middle := (low + high) / 2
		switch l := t.label[middle]; {
		case l == c:
			return middle
		case l < c:
			low = middle + 1
		default:
			high = middle
		}
	}
	return -1
}

// walk returns the node of a text, or -1.
func (t *trie) walk(text string) int32 {
	node := int32(0)
	for i := 0; i < len(text) && node >= 0; i++ {
		node = t.next(node, text[i])
	}
	return node
}

// depth returns the length of the longest prefix of text that begins a text in t.
func (t *trie) depth(text string) int {
	node := int32(0)
	for i := range len(text) {
		if node = t.next(node, text[i]); node < 0 {
			return i
		}
	}
	return len(text)
}

// longest returns the value and the length of the longest prefix of text that is in t, starting
// from node, the node of the text before it. The value is -1 if there is none. Empty prefixes and
// barred values do not count; barred may be nil.
func (t *trie) longest(node int32, text string, barred []bool) (value int32, n int) {
	value = -1
	for i := 0; i < len(text); i++ {
		if node = t.next(node, text[i]); node < 0 {
			break
		}
		if v := t.value[node]; v >= 0 && (barred == nil || !barred[v]) {
			value, n = t.value[node], i+1
		}
	}
	return value, n
}

// visibleTokens returns a trie of the tokens that text may become.
func (v *vocabulary) visibleTokens(keep func(id int32) bool) *trie {
	entries := make([]entry, 0, len(v.ids))
	for text, id := range v.ids {
		if text != "" && !v.tokens[id].hidden && (keep == nil || keep(id)) {
			entries = append(entries, entry{text, id})
		}
	}
	return newTrie(entries)
}
