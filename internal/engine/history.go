package engine

import "hash/maphash"

// Pages are found by the tokens that led to them, compared one by one, in a tree. A node is a
// history of whole pages of tokens. Equal token histories have equal states, bit for bit, however
// they were cut into steps.

// A node is a history: its parent's history and one more page of tokens.
type node struct {
	key    history
	parent *node // nil for a root
	next   *node // in the chain of equal hashes
	root   beginning
	id     uint64
	hash   uint64 // see [CacheEvent]; 0 if there are no events
	uses   int    // by children, by paths of sequences, and by pages
	places []place

	children int
	lasts    bool // its checkpoint is never spare, see [checkpoints]
}

// A history identifies a node.
type history struct {
	parent uint64
	tokens [pageTokens]int32
}

// A beginning identifies a root: what histories share before their first token. Prompts of one
// class have the same rotary frequencies at each position.
type beginning struct {
	salt  string
	class int // of rotary frequencies, see [plan.Program.LengthClass]
}

// A place holds the pages, in one group, with the states of a node's last page of tokens.
type place struct {
	page   int32  // on the device, or none
	filled uint64 // the step that fills page
	host   int32  // in host memory, or none
	saved  uint64 // the step that fills host
}

// A tree holds all nodes.
type tree struct {
	groups     int
	hashed     bool // nodes have hashes
	seed       maphash.Seed
	nodes      map[uint64]*node // the first node of each hash of a history
	beginnings map[beginning]*node
	last       uint64  // the last id used
	spare      []*node // for reuse
}

func newTree(groups int, hashed bool) tree {
	return tree{groups: groups, hashed: hashed, seed: maphash.MakeSeed(), nodes: map[uint64]*node{}, beginnings: map[beginning]*node{}}
}

// slab is how many nodes are allocated at one time.
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

// begin returns the root of b. It stays while it is used.
func (t *tree) begin(b beginning) *node {
	n := t.beginnings[b]
	if n == nil {
		n = t.newNode()
		if n.root = b; t.hashed {
			n.hash = hashBeginning(b)
		}
		t.beginnings[b] = n
	}
	return n
}

// child returns the node for a page of tokens after n, or nil.
func (t *tree) child(n *node, tokens []int32) *node {
	key := history{n.id, [pageTokens]int32(tokens)}
	return t.at(maphash.Comparable(t.seed, key), &key)
}

// at returns the node of key, whose hash is given, or nil.
func (t *tree) at(hash uint64, key *history) *node {
	n := t.nodes[hash]
	for n != nil && n.key != *key {
		n = n.next
	}
	return n
}

// grow returns the node for a page of tokens after n. It adds the node if there is none. The node
// stays while it is used.
func (t *tree) grow(n *node, tokens []int32) *node {
	key := history{n.id, [pageTokens]int32(tokens)}
	hash := maphash.Comparable(t.seed, key)
	c := t.at(hash, &key)
	if c == nil {
		c = t.newNode()
		if c.key, c.parent, c.next = key, n, t.nodes[hash]; t.hashed {
			c.hash = hashPage(n.hash, &key.tokens)
		}
		n.uses++
		n.children++
		t.nodes[hash] = c
	}
	return c
}

// unuse releases one use of n. It removes nodes that are no longer used.
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
			parent.children--
		}
		t.spare = append(t.spare, n)
		n = parent
	}
}

// remove unlinks n from the chain of its hash.
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

// all calls yield with every node but the roots.
func (t *tree) all(yield func(*node) bool) {
	for _, n := range t.nodes {
		for ; n != nil; n = n.next {
			if !yield(n) {
				return
			}
		}
	}
}
