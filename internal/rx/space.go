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

// A Leaf is a state of an automaton that the caller implements: a small comparable value. A
// state from which no accepting state can be reached must be nil. If a Leaf has a method
// Key() string, leaves of the same type with equal keys share cached results.
type Leaf interface {
	// Next returns the state after b, or nil if no string continues with b.
	Next(b byte) Leaf
	// Accepts reports whether a string may end in this state.
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
	plain    bool // made without And and Not, so that it has a string
	height   uint16
	a, b     Expr
	min, max int
	args     []Expr // ascending
	chain    Expr   // the next node with the same hash
	steps    []step // known derivatives
	fate     fate
}

type step struct {
	on ByteSet
	to Expr
}

// A fate says whether a set is known to have a string.
type fate uint8

const (
	unknown fate = iota
	empty
	inhabited
)

const (
	maxHeight = 4000 // recursion depth of a derivation
	maxFactor = 500  // recursion depth of the search for common prefixes of alternatives
	maxFlat   = 256  // parts of a sequence that concat merges into the sequence after it
)

// A Space holds expressions. It is safe for concurrent use.
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
	depth  int // recursion depth of the constructors
	buffer []byte
}

// NewSpace returns a Space that holds about limit expressions, including derivatives.
func NewSpace(limit int) *Space {
	s := &Space{limit: limit, table: map[uint64]Expr{}}
	s.nodes = append(s.nodes,
		node{op: opNothing, plain: true, fate: empty},
		node{op: opEmpty, nullable: true, plain: true, fate: inhabited},
		node{op: opNot, a: Nothing, nullable: true, plain: true, fate: inhabited})
	return s
}

// Err returns [ErrTooLarge] if the space has reached its limit. Expressions made since then are
// not valid.
func (s *Space) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Len returns the number of expressions in s.
func (s *Space) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}

// Bytes returns the strings of one byte of the set.
func (s *Space) Bytes(set ByteSet) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes(set)
}

// Literal returns the set with the single string text.
func (s *Space) Literal(text string) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Empty
	for i := len(text) - 1; i >= 0; i-- {
		e = s.concat(s.bytes(BytesOf(text[i])), e)
	}
	return e
}

// Concat returns the concatenation of the parts.
func (s *Space) Concat(parts ...Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Empty
	for _, part := range slices.Backward(parts) {
		e = s.concat(s.known(part), e)
	}
	return e
}

// Or returns the union of the sets.
func (s *Space) Or(sets ...Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.or(s.allKnown(sets))
}

// And returns the intersection of the sets, or [Anything] if there are none.
func (s *Space) And(sets ...Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.and(s.allKnown(sets))
}

// Not returns the complement of e.
func (s *Space) Not(e Expr) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.not(s.known(e))
}

// Repeat returns the concatenations of min to max strings of e; max < 0 means no upper bound.
func (s *Space) Repeat(e Expr, min, max int) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeat(s.known(e), min, max)
}

// Leaf returns the strings that the automaton accepts from l on; [Nothing] if l is nil.
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

// known returns e, or Nothing if the space has no such expression.
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

// spend counts work that does not create an expression.
func (s *Space) spend(n int) {
	if s.work += n; s.work > 64*s.limit+1<<20 {
		s.fail()
	}
}

var seed = maphash.MakeSeed()

// intern returns the expression of n, a new one if s has no equal node.
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
