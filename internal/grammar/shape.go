package grammar

import (
	"encoding/binary"
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// A shape is what the tokens of a tier do from a state of the lexemes, independent of what follows
// the lexemes.
type shape struct {
	inside *tokens // tokens that stay within a lexeme
	exits  []exit  // where other tokens leave it
	size   int     // bytes
}

// An exit is the nodes at which the same lexemes end and tokens may leave them.
type exit struct {
	slots    []int   // indexes of the lexemes in the state
	nodes    []int32 // nodes with many tokens below
	gathered []int32 // nodes with few tokens below
	rest     *trie   // the remaining text of these few tokens; nil if there are none
}

// tokens is a set of tokens: a list of ids, or the words of a mask.
type tokens struct {
	ids   []int32
	words []uint32
}

func (t *tokens) size() int { return 4 * (len(t.ids) + len(t.words)) }

// addTo sets the bits of t in words.
func (t *tokens) addTo(words []uint32) {
	for _, id := range t.ids {
		words[id/32] |= 1 << (id % 32)
	}
	for i, w := range t.words {
		words[i] |= w
	}
}

// tokensOf returns the set of ids in the smaller of the two forms.
func tokensOf(ids []int32, words int) tokens {
	if len(ids) <= words {
		return tokens{ids: slices.Clone(ids)}
	}
	t := tokens{words: make([]uint32, words)}
	for _, id := range ids {
		t.words[id/32] |= 1 << (id % 32)
	}
	return t
}

// manyOutside is the most tokens leaving a lexeme at one node whose remaining texts are gathered in
// a trie. Gathering pays off for cached shapes only.
var manyOutside = 256

// A shaper computes shapes. It is reused.
type shaper struct {
	ids    []int32
	open   []visit
	exits  map[string]*leaving
	accept map[*rx.Accept]*leaving
	inside []uint32
	slots  []int
	key    []byte
	gather int // gather the tokens of nodes with at most this many
	dirty  []span
}

// A visit is a node on the path to the current one.
type visit struct {
	node     int32
	kid, end int32 // children not yet walked
	row      *rx.Row
	accept   *rx.Accept
	inside   int // number of tokens found before its subtree

	// If two states are compared:
	twin  *rx.Row // of the second state; nil if no lexeme continues there
	apart bool    // a lexeme has ended in one of them
}

// A leaving is an exit under construction.
type leaving struct {
	slots    []int
	nodes    []int32
	gathered []int32
	pieces   []piece
}

// shape walks a tier of v from st. If at most gather tokens leave the lexemes at a node, it gathers
// their remaining texts.
func (p *shaper) shape(sc *scratch, v *Vocabulary, tr *trie, st *rx.State, gather int) (*shape, error) {
	row, err := sc.row(st)
	if err != nil {
		return nil, err
	}
	p.begin(v, tr, gather, visit{row: row})
	for {
		at := &p.open[len(p.open)-1]
		var next *rx.State
		for ; at.kid < at.end && next == nil; at.kid++ {
			next = at.row.Next[at.row.Class[tr.bytes[at.kid]]]
		}
		if next == nil {
			if len(p.open) == 1 {
				return p.finish(v), nil
			}
			p.open = p.open[:len(p.open)-1]
			p.leave(v, tr, st, at)
			continue
		}
		if err := p.enter(sc, v, tr, st, next, visit{node: tr.kids[at.kid-1]}); err != nil {
			return nil, err
		}
	}
}

func (p *shaper) begin(v *Vocabulary, tr *trie, gather int, root visit) {
	p.gather = gather
	root.end = int32(tr.nodes[0].kids)
	p.ids, p.open, p.dirty = p.ids[:0], append(p.open[:0], root), p.dirty[:0]
	if p.inside == nil {
		p.inside = make([]uint32, v.words)
		p.exits, p.accept = map[string]*leaving{}, map[*rx.Accept]*leaving{}
	}
	clear(p.exits)
	clear(p.accept)
}

// enter visits a node that leads to the state next.
func (p *shaper) enter(sc *scratch, v *Vocabulary, tr *trie, st, next *rx.State, at visit) error {
	at.accept, at.inside = next.Accept(), len(p.ids)
	if !next.Final() {
		p.ids = append(p.ids, tr.at(at.node)...)
		if node := &tr.nodes[at.node]; node.kids > 0 {
			row, err := sc.row(next)
			if err != nil {
				return err
			}
			at.row, at.kid, at.end = row, node.kid, node.kid+int32(node.kids)
			p.open = append(p.open, at)
			return nil
		}
	}
	p.leave(v, tr, st, &at)
	return nil
}

// leave ends a visit, after the node's subtree.
func (p *shaper) leave(v *Vocabulary, tr *trie, st *rx.State, at *visit) {
	if at.accept == nil {
		return
	}
	below := tr.below(at.node)
	outside := len(below) - (len(p.ids) - at.inside)
	if outside == 0 {
		return
	}
	l := p.accept[at.accept]
	if l == nil {
		l = p.leaving(at.accept, st)
		p.accept[at.accept] = l
	}
	if outside > p.gather {
		l.nodes = append(l.nodes, at.node)
		return
	}
	l.gathered = append(l.gathered, at.node)
	inside := p.ids[at.inside:]
	for _, id := range inside {
		p.inside[id/32] |= 1 << (id % 32)
	}
	depth := int(tr.nodes[at.node].depth)
	for _, id := range below {
		if p.inside[id/32]>>(id%32)&1 == 0 {
			l.pieces = append(l.pieces, piece{v.pieces[id][depth:], id})
		}
	}
	for _, id := range inside {
		p.inside[id/32] = 0
	}
}

// leaving returns the exit of the lexemes of accept.
func (p *shaper) leaving(accept *rx.Accept, st *rx.State) *leaving {
	p.slots = st.Slots(accept, p.slots[:0])
	key := p.key[:0]
	for _, n := range p.slots {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	p.key = key
	l := p.exits[string(key)]
	if l == nil {
		l = &leaving{slots: slices.Clone(p.slots)}
		p.exits[string(key)] = l
	}
	return l
}

// finish returns the shape of the finished walk.
func (p *shaper) finish(v *Vocabulary) *shape {
	inside := tokensOf(p.ids, v.words)
	s := &shape{inside: &inside}
	s.size = 100 + s.inside.size()
	for _, l := range p.exits {
		e := exit{slots: l.slots, nodes: slices.Clone(l.nodes), gathered: slices.Clone(l.gathered)}
		s.size += 120 + 4*(len(l.nodes)+len(l.gathered))
		if len(l.pieces) > 0 {
			e.rest = newTrie(l.pieces)
			s.size += e.rest.size()
		}
		s.exits = append(s.exits, e)
	}
	return s
}
