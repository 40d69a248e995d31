package grammar

import (
	"encoding/binary"
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

// A shape is what tokens do from a state of the lexemes, whatever comes after these.
type shape struct {
	inside *tokens // those that stay within a lexeme
	exits  []exit  // where the others leave it
	size   int     // bytes
}

// An exit is tokens that come to the end of lexemes and are not all inside.
type exit struct {
	slots    []int   // the lexemes, by their place in the state
	nodes    []int32 // where they end and many tokens go on
	gathered []int32 // where they end and few do
	rest     *trie   // what is left of these few, by token; nil where there are none
}

// tokens is some of a vocabulary: a list, or words of a mask.
type tokens struct {
	ids   []int32
	words []uint32
}

func (t *tokens) size() int { return 4 * (len(t.ids) + len(t.words)) }

// addTo sets the bits of t.
func (t *tokens) addTo(words []uint32) {
	for _, id := range t.ids {
		words[id/32] |= 1 << (id % 32)
	}
	for i, w := range t.words {
		words[i] |= w
	}
}

// tokensOf is these ids, as what takes less room.
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

// manyOutside is from how many tokens on that leave a lexeme at one node these are walked
// where they are and not gathered by what is left of them. That is worth it only for shapes
// that are kept.
var manyOutside = 256

// shaper finds shapes. It is used once and over again.
type shaper struct {
	ids    []int32
	open   []visit
	exits  map[string]*leaving
	accept map[*rx.Accept]*leaving
	inside []uint32
	slots  []int
	key    []byte
	gather int // up to how many tokens are gathered
	dirty  []span
}

// visit is a node on the way to the one that is walked.
type visit struct {
	node   int32
	state  *rx.State
	inside int // tokens found before its subtree

	// Where two states are compared:
	twin  *rx.State
	apart bool // one of them has come to the end of a lexeme
}

// leaving is an exit that is being made.
type leaving struct {
	slots    []int
	nodes    []int32
	gathered []int32
	pieces   []piece
}

// shape walks a tier of v from st. Tokens that leave at one node are gathered by what is left
// of them where they are no more than gather.
func (p *shaper) shape(sc *scratch, v *Vocabulary, tr *trie, st *rx.State, gather int) (*shape, error) {
	p.begin(v, st, gather)
	row, err := sc.row(st)
	if err != nil {
		return nil, err
	}
	live := row.Live
	nodes := tr.nodes
	for n := int32(1); ; {
		node := &nodes[n]
		for len(p.open) > int(node.depth) && len(p.open) > 1 {
			p.leave(v, tr, st)
		}
		if int(n) == len(nodes)-1 {
			break
		}
		if node.depth == 1 && !live.Has(node.b) {
			n = node.skip
			continue
		}
		row, err := sc.row(p.open[len(p.open)-1].state)
		if err != nil {
			return nil, err
		}
		next := row.Next[row.Class[node.b]]
		if next == nil {
			n = node.skip
			continue
		}
		p.open = append(p.open, visit{node: n, state: next, inside: len(p.ids)})
		if !next.Final() {
			p.ids = append(p.ids, tr.at(n)...)
		}
		n++
	}
	return p.finish(v), nil
}

func (p *shaper) begin(v *Vocabulary, st *rx.State, gather int) {
	p.gather = gather
	p.ids, p.open, p.dirty = p.ids[:0], append(p.open[:0], visit{state: st}), p.dirty[:0]
	p.exits, p.accept = map[string]*leaving{}, map[*rx.Accept]*leaving{}
	if p.inside == nil {
		p.inside = make([]uint32, v.words)
	}
}

// leave ends the visit of the last node: its subtree is done.
func (p *shaper) leave(v *Vocabulary, tr *trie, st *rx.State) {
	at := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	accept := at.state.Accept()
	below := tr.below(at.node)
	outside := len(below) - (len(p.ids) - at.inside)
	if accept == nil || outside == 0 {
		return
	}
	l := p.accept[accept]
	if l == nil {
		l = p.leaving(accept, st)
		p.accept[accept] = l
	}
	if outside > p.gather {
		l.nodes = append(l.nodes, at.node)
		return
	}
	l.gathered = append(l.gathered, at.node)
	inside := p.ids[at.inside:]
	if len(inside) > 0 {
		for _, id := range inside {
			p.inside[id/32] |= 1 << (id % 32)
		}
		defer func() {
			for _, id := range inside {
				p.inside[id/32] = 0
			}
		}()
	}
	depth := int(tr.nodes[at.node].depth)
	for _, id := range below {
		if p.inside[id/32]>>(id%32)&1 == 0 {
			l.pieces = append(l.pieces, piece{v.pieces[id][depth:], id})
		}
	}
}

// leaving is the exit by these lexemes.
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

// finish is the shape of what was found.
func (p *shaper) finish(v *Vocabulary) *shape {
	inside := tokensOf(p.ids, v.words)
	s := &shape{inside: &inside}
	s.size = 100 + s.inside.size()
	for _, l := range p.exits {
		e := exit{slots: l.slots, nodes: slices.Clone(l.nodes), gathered: slices.Clone(l.gathered)}
		s.size += 120 + 4*(len(l.nodes)+len(l.gathered))
		if len(l.pieces) > 0 {
			e.rest = newTrie(l.pieces)
			s.size += 12*len(e.rest.nodes) + 4*len(e.rest.ids)
		}
		s.exits = append(s.exits, e)
	}
	return s
}
