package rx

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
)

// An Expr is a set of byte strings, in the [Space] that made it. Expressions of equal
// structure are equal.
type Expr uint32

// The expressions that every Space has.
const (
	Nothing  Expr = iota // no string
	Empty                // the string ""
	Anything             // every string
)

// A Leaf is a state of an automaton of one's own: a small comparable value. Every state from
// which no accepting one can be reached is nil. A Leaf that has a method Key() string shares
// what is kept about expressions with equal keys and types.
type Leaf interface {
	// Next is the state after b; nil where no string goes on so.
	Next(b byte) Leaf
	// Accepts reports whether a string may end here.
	Accepts() bool
}

type op uint8

const (
	opBytes  op = iota // bytes[a]
	opConcat           // a, then b
	opOr               // one of args
	opAnd              // all of args
	opNot              // not a; Nothing makes Anything
	opRepeat           // a, from min to max times; max < 0: without bound
	opLeaf             // leaves[a]
	opEmpty
	opNothing
)

// node is one expression.
type node struct {
	op       op
	nullable bool
	plain    bool // built without And, Not: then it is a set with strings
	height   uint16
	a, b     Expr
	min, max int
	args     []Expr // ascending
	chain    Expr   // the next of equal hash
	steps    []step // derivatives known
	fate     fate
}

type step struct {
	on ByteSet
	to Expr
}

// fate is what is known of whether a set has strings.
type fate uint8

const (
	unknown fate = iota
	empty
	inhabited
)

const (
	maxHeight = 4000 // how deep a derivation recurses
	maxFactor = 500  // how deep constructors look for what alternatives share
	maxFlat   = 256  // how long a sequence at the front of another becomes a part of it
)

// A Space holds expressions. Many goroutines may use it at once.
type Space struct {
	mu     sync.Mutex
	limit  int
	used   int
	work   int
	err    error
	nodes  []node
	table  map[uint64]Expr // hash to the first of its chain
	sets   []ByteSet
	leaves []Leaf
	depth  int // of constructors that call each other
	buffer []byte
}

// NewSpace makes one that holds about limit expressions, derivatives counted.
func NewSpace(limit int) *Space {
	s := &Space{limit: limit, table: map[uint64]Expr{}}
	s.nodes = append(s.nodes,
		node{op: opNothing, plain: true, fate: empty},
		node{op: opEmpty, nullable: true, plain: true, fate: inhabited},
		node{op: opNot, a: Nothing, nullable: true, plain: true, fate: inhabited})
	return s
}

// Err is nil, or says that the space was too small. Then what it made since is void.
func (s *Space) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Len is the number of expressions in s.
func (s *Space) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}

// Bytes is the strings of one byte of the set.
func (s *Space) Bytes(set ByteSet) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes(set)
}

// Literal is the string text alone.
func (s *Space) Literal(text string) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Empty
	for i := len(text) - 1; i >= 0; i-- {
		e = s.concat(s.bytes(BytesOf(text[i])), e)
	}
	return e
}

// Concat is a string of each, one after the other.
func (s *Space) Concat(parts ...Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Empty
	for _, part := range slices.Backward(parts) {
		e = s.concat(s.known(part), e)
	}
	return e
}

// Or is the strings that one of the sets has.
func (s *Space) Or(sets ...Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.or(s.allKnown(sets))
}

// And is the strings that all of the sets have; [Anything] of none.
func (s *Space) And(sets ...Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.and(s.allKnown(sets))
}

// Not is the strings that e has not.
func (s *Space) Not(e Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.not(s.known(e))
}

// Repeat is from min to max strings of e, one after the other; max < 0 is no bound.
func (s *Space) Repeat(e Expr, min, max int) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeat(s.known(e), min, max)
}

// Leaf is the strings that the automaton accepts from l on. A nil l has none.
func (s *Space) Leaf(l Leaf) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaf(l)
}

// Nullable reports whether e has the string "".
func (s *Space) Nullable(e Expr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[s.known(e)].nullable
}

// known is e, or Nothing where this space has no such expression.
func (s *Space) known(e Expr) Expr {
	if int(e) >= len(s.nodes) {
		s.fail()
		return Nothing
	}
	return e
}

func (s *Space) allKnown(es []Expr) []Expr {
	es = slices.Clone(es)
	for i, e := range es {
		es[i] = s.known(e)
	}
	return es
}

func (s *Space) fail() Expr {
	s.err = ErrTooLarge
	return Nothing
}

// spend counts work that makes no expression.
func (s *Space) spend(n int) {
	if s.work += n; s.work > 64*s.limit+1<<20 {
		s.fail()
	}
}

var seed = maphash.MakeSeed()

// intern is the node's expression: one that s has, or a new one.
func (s *Space) intern(n node) Expr {
	if s.err != nil {
		return Nothing
	}
	buf := append(s.buffer[:0], byte(n.op))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(n.a))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(n.b))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(n.min))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(n.max))
	for _, arg := range n.args {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(arg))
	}
	s.buffer = buf
	hash := maphash.Bytes(seed, buf)
	first := s.table[hash]
	for e := first; e != 0; e = s.nodes[e].chain {
		if have := &s.nodes[e]; have.op == n.op && have.a == n.a && have.b == n.b && have.min == n.min && have.max == n.max && slices.Equal(have.args, n.args) {
			return e
		}
	}
	if s.used += 1 + len(n.args)/8; s.used > s.limit {
		return s.fail()
	}
	if n.plain {
		n.fate = inhabited
	}
	if n.height > maxHeight {
		return s.fail()
	}
	n.args = slices.Clone(n.args)
	n.chain = first
	e := Expr(len(s.nodes))
	s.nodes = append(s.nodes, n)
	s.table[hash] = e
	return e
}

func (s *Space) bytes(set ByteSet) Expr {
	if set.IsEmpty() || s.err != nil {
		return Nothing
	}
	hash := maphash.Comparable(seed, set)
	first := s.table[hash]
	for e := first; e != 0; e = s.nodes[e].chain {
		if have := &s.nodes[e]; have.op == opBytes && s.sets[have.a] == set {
			return e
		}
	}
	if s.used++; s.used > s.limit {
		return s.fail()
	}
	e := Expr(len(s.nodes))
	s.nodes = append(s.nodes, node{op: opBytes, a: Expr(len(s.sets)), plain: true, fate: inhabited, chain: first})
	s.sets = append(s.sets, set)
	s.table[hash] = e
	return e
}

func (s *Space) leaf(l Leaf) Expr {
	if l == nil || s.err != nil {
		return Nothing
	}
	hash := maphash.Comparable(seed, l)
	first := s.table[hash]
	for e := first; e != 0; e = s.nodes[e].chain {
		if have := &s.nodes[e]; have.op == opLeaf && s.leaves[have.a] == l {
			return e
		}
	}
	if s.used++; s.used > s.limit {
		return s.fail()
	}
	e := Expr(len(s.nodes))
	s.nodes = append(s.nodes, node{op: opLeaf, a: Expr(len(s.leaves)), nullable: l.Accepts(), plain: true, fate: inhabited, chain: first})
	s.leaves = append(s.leaves, l)
	s.table[hash] = e
	return e
}

func (s *Space) not(e Expr) Expr {
	n := &s.nodes[e]
	switch {
	case s.err != nil:
		return Nothing
	case e == Nothing:
		return Anything
	case n.op == opNot:
		return n.a
	}
	return s.intern(node{op: opNot, a: e, nullable: !n.nullable, height: n.height + 1})
}
