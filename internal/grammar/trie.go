package grammar

import (
	"bytes"
	"slices"
)

// A trie holds pieces of tokens. Its nodes are in depth-first order, from the root to a sentinel
// after the last.
type trie struct {
	nodes []trieNode
	ids   []int32 // tokens, in the order of their nodes
	bytes []byte  // bytes that lead to the children; those of one node are adjacent and ascending
	kids  []int32 // child nodes, at the indexes of their bytes
}

type trieNode struct {
	skip  int32 // the first node after the subtree
	first int32 // index in ids: its own tokens end at the next node's first, the subtree's at skip's
	kid   int32 // index in kids of the first child
	kids  uint16
	depth uint16
}

// A piece is the remaining text of a token.
type piece struct {
	text []byte
	id   int32
}

// newTrie sorts the pieces and returns their trie. Texts are at most [maxPiece] bytes long.
func newTrie(pieces []piece) *trie {
	slices.SortFunc(pieces, func(a, b piece) int {
		if c := bytes.Compare(a.text, b.text); c != 0 {
			return c
		}
		return int(a.id) - int(b.id)
	})
	t := &trie{nodes: make([]trieNode, 1, 2*len(pieces)+2), ids: make([]int32, 0, len(pieces))}
	bytes := make([]byte, 1, 2*len(pieces)+1) // the byte that leads to each node
	path := []int32{0}                        // nodes from the root to the last
	var last []byte
	for _, p := range pieces {
		same := 0
		for same < len(last) && same < len(p.text) && last[same] == p.text[same] {
			same++
		}
		for len(path) > same+1 {
			t.nodes[path[len(path)-1]].skip = int32(len(t.nodes))
			path = path[:len(path)-1]
		}
		for _, b := range p.text[same:] {
			path = append(path, int32(len(t.nodes)))
			t.nodes = append(t.nodes, trieNode{first: int32(len(t.ids)), depth: uint16(len(path) - 1)})
			bytes = append(bytes, b)
		}
		t.ids = append(t.ids, p.id)
		last = p.text
	}
	for _, n := range path {
		t.nodes[n].skip = int32(len(t.nodes))
	}
	t.nodes = append(t.nodes, trieNode{skip: int32(len(t.nodes)), first: int32(len(t.ids))})
	t.nodes = slices.Clip(t.nodes)
	t.bytes, t.kids = make([]byte, 0, len(bytes)-1), make([]int32, 0, len(bytes)-1)
	for n := range t.nodes[:len(bytes)] {
		node := &t.nodes[n]
		node.kid = int32(len(t.kids))
		for kid := int32(n) + 1; kid < node.skip; kid = t.nodes[kid].skip {
			t.bytes, t.kids = append(t.bytes, bytes[kid]), append(t.kids, kid)
		}
		node.kids = uint16(len(t.kids) - int(node.kid))
	}
	return t
}

// size returns the size of t in bytes.
func (t *trie) size() int { return 16*len(t.nodes) + 4*len(t.ids) + 5*len(t.kids) }

// at returns the tokens of node n.
func (t *trie) at(n int32) []int32 { return t.ids[t.nodes[n].first:t.nodes[n+1].first] }

// below returns the tokens of the subtree of node n.
func (t *trie) below(n int32) []int32 { return t.ids[t.nodes[n].first:t.nodes[t.nodes[n].skip].first] }
