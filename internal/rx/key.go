package rx

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
)

// A Key identifies the structure of a state's lexemes, independent of their space and IDs.
type Key [32]byte

// Key returns a key of the state's structure. States with equal keys read strings of at most
// window bytes alike, lexeme by lexeme; counts above window are not distinguished. It returns
// false if the state contains a [Leaf] without a key.
func (st *State) Key(window int) (Key, bool) {
	a := st.automaton
	a.mu.Lock()
	defer a.mu.Unlock()
	k := keys{space: st.gen.space, window: window, known: st.gen.keys[window]}
	if k.known == nil {
		k.known = map[Expr]Key{}
		st.gen.keys[window] = k.known
	}
	buf := make([]byte, 0, 32*len(st.lexemes))
	for _, l := range st.lexemes {
		key := k.of(l.Set, true)
		buf = append(buf, key[:]...)
	}
	if k.failed {
		delete(st.gen.keys, window) // some of its keys are not valid
	}
	return sha256.Sum256(buf), !k.failed
}

// keys computes the keys of expressions.
type keys struct {
	space  *Space
	window int
	known  map[Expr]Key
	exact  map[Expr]Key // within and and not
	failed bool
}

// of returns the key of e. Inside an intersection or a complement, counts matter however
// large they are; near says that e is outside of both.
func (k *keys) of(e Expr, near bool) Key {
	known := k.known
	if !near {
		if k.exact == nil {
			k.exact = map[Expr]Key{}
		}
		known = k.exact
	}
	// Follow sequences in a loop, as they may be long.
	var parts []Expr
	for k.space.nodes[e].op == opConcat {
		if _, ok := known[e]; ok {
			break
		}
		parts = append(parts, e)
		e = k.space.nodes[e].b
	}
	key, ok := known[e]
	if !ok {
		key = k.node(e, near)
		known[e] = key
	}
	for _, part := range slices.Backward(parts) {
		head := k.of(k.space.nodes[part].a, near)
		key = hash(opConcat, head[:], key[:])
		known[part] = key
	}
	return key
}

func (k *keys) node(e Expr, near bool) Key {
	n := &k.space.nodes[e]
	switch n.op {
	case opBytes:
		set := k.space.sets[n.a]
		var buf [32]byte
		for i, w := range set {
			binary.LittleEndian.PutUint64(buf[8*i:], w)
		}
		return hash(opBytes, buf[:])
	case opLeaf:
		leaf, ok := k.space.leaves[n.a].(interface{ Key() string })
		if !ok {
			k.failed = true
			return Key{}
		}
		return hash(opLeaf, []byte(fmt.Sprintf("%s\x00%s", reflect.TypeOf(leaf), leaf.Key())))
	case opRepeat:
		body := k.of(n.a, near)
		lo, hi := n.min, n.max
		if near {
			lo = min(lo, k.window+1)
			if hi >= k.window {
				hi = -1
			}
		}
		var buf [16]byte
		binary.LittleEndian.PutUint64(buf[:], uint64(lo))
		binary.LittleEndian.PutUint64(buf[8:], uint64(hi))
		return hash(opRepeat, body[:], buf[:])
	case opOr, opAnd, opNot:
		args := n.args
		if n.op == opNot {
			args = []Expr{n.a}
		}
		parts := make([]Key, len(args))
		for i, arg := range args {
			parts[i] = k.of(arg, near && n.op == opOr)
		}
		slices.SortFunc(parts, func(a, b Key) int { return cmp.Compare(string(a[:]), string(b[:])) })
		var buf []byte
		for _, p := range parts {
			buf = append(buf, p[:]...)
		}
		return hash(n.op, buf)
	}
	return hash(n.op)
}

func hash(o op, parts ...[]byte) Key {
	var own [80]byte
	buf := append(own[:0], byte(o))
	for _, p := range parts {
		buf = append(buf, p...)
	}
	return sha256.Sum256(buf)
}
