package engine

import "hash/maphash"

// Pages are found by the tokens that led to them, compared one by one: a tree whose
// nodes are histories of whole pages of tokens. Tokens of equal histories have equal
// states, bit for bit, however they were cut into steps.

// A node is a history: its parent's, and a page of tokens more.
type node struct {
	key    history
	parent *node // nil of a beginning
	next   *node // of the same hash
	root   beginning
	id     uint64
	uses   int // by children, by the sequences that it is of, and by the pages that it has
	places []place
}

// A history names a node among all.
type history struct {
	parent uint64
	tokens [pageTokens]int32
}

// A beginning is what histories have in common before their first token. Tokens after
// a prompt turn by the frequencies of their own positions, which are the same for
// all prompts of one class.
type beginning struct {
	salt  string
	class int // of rotary frequencies, see [plan.Program.LengthClass]
}

// A place says where the states of a node's last tokens are, of one group.
type place struct {
	page   int32  // of the device's, or none
	filled uint64 // the step that fills it
	host   int32  // of the host's pages, or none
	saved  uint64 // the step that fills that
}

// A tree is all nodes.
type tree struct {
	groups     int
	seed       maphash.Seed
	nodes      map[uint64]*node // by a hash of their history, the first of those that have it
	beginnings map[beginning]*node
	last       uint64  // id given
	spare      []*node // for other histories
}

func newTree(groups int) tree {
	return tree{groups: groups, seed: maphash.MakeSeed(), nodes: map[uint64]*node{}, beginnings: map[beginning]*node{}}
}

// slab is how many nodes are made at one time.
const slab = 128

func (t *tree) newNode() *node {
	if len(t.spare) == 0 {
		nodes, places := make([]node, slab), make([]place, slab*t.groups)
		for i := range nodes {
			nodes[i].places = places[i*t.groups : (i+1)*t.groups : (i+1)*t.groups]
			t.spare = append(t.spare, &nodes[i])
		}
	}
	n := t.spare[len(t.spare)-1]
	t.spare = t.spare[:len(t.spare)-1]
	t.last++
	*n = node{id: t.last, places: n.places}
	for g := range n.places {
		n.places[g] = place{page: none, host: none}
	}
	return n
}

// begin is the node of no tokens. It stays while it is used.
func (t *tree) begin(b beginning) *node {
	n := t.beginnings[b]
	if n == nil {
		n = t.newNode()
		n.root = b
		t.beginnings[b] = n
	}
	return n
}

// child is the node for a page of tokens after n, or nil.
func (t *tree) child(n *node, tokens []int32) *node {
	key := history{n.id, [pageTokens]int32(tokens)}
	return t.at(maphash.Comparable(t.seed, key), &key)
}

// at is the node of key, which has that hash, or nil.
func (t *tree) at(hash uint64, key *history) *node {
	n := t.nodes[hash]
	for n != nil && n.key != *key {
		n = n.next
	}
	return n
}

// grow is the node for a page of tokens after n. It stays while it is used.
func (t *tree) grow(n *node, tokens []int32) *node {
	key := history{n.id, [pageTokens]int32(tokens)}
	hash := maphash.Comparable(t.seed, key)
	c := t.at(hash, &key)
	if c == nil {
		c = t.newNode()
		c.key, c.parent, c.next = key, n, t.nodes[hash]
		n.uses++
		t.nodes[hash] = c
	}
	return c
}

// unuse says that one use of n has ended.
func (t *tree) unuse(n *node) {
	for n != nil {
		if n.uses--; n.uses > 0 {
			return
		}
		parent := n.parent
		if parent == nil {
			delete(t.beginnings, n.root)
		} else {
			t.remove(n)
		}
		t.spare = append(t.spare, n)
		n = parent
	}
}

// remove takes n out of those of its hash.
func (t *tree) remove(n *node) {
	hash := maphash.Comparable(t.seed, n.key)
	if first := t.nodes[hash]; first != n {
		for first.next != n {
			first = first.next
		}
		first.next = n.next
	} else if n.next != nil {
		t.nodes[hash] = n.next
	} else {
		delete(t.nodes, hash)
	}
}

// all calls yield with every node but the beginnings.
func (t *tree) all(yield func(*node) bool) {
	for _, n := range t.nodes {
		for ; n != nil; n = n.next {
			if !yield(n) {
				return
			}
		}
	}
}
