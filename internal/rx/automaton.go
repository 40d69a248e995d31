package rx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"weak"
)

// A Lexeme is a set of strings with an ID that the caller chooses.
type Lexeme struct {
	ID  int32
	Set Expr
}

// An Automaton reads several lexemes at once. It builds its states lazily. When they reach the
// limit, it starts a new generation with an empty space of its own: states that are still
// referenced continue in the new generation, and all others are garbage. It is safe for
// concurrent use; existing states are read without a lock.
type Automaton struct {
	base  *Space
	limit int
	work  atomic.Int64
	kept  atomic.Int64 // expressions and states of the current generation

	mu    sync.Mutex
	gen   *generation
	short bool // the previous generation ended with few rows
}

// A generation is what an automaton has built since it last started anew.
type generation struct {
	space   *Space // of derivatives
	imports imports
	states  map[string]*State
	accepts map[string]*Accept
	keys    map[int]map[Expr]Key // by window
	size    int
	rows    int
	buffer  []byte
	lexemes []Lexeme
}

// An Accept lists the lexemes that end in a state, by ascending ID.
type Accept struct{ IDs []int32 }

// A State is what is left of the lexemes after a text. Equal states of one generation are
// identical.
type State struct {
	automaton *Automaton
	gen       *generation
	lexemes   []Lexeme // their sets in gen.space, ascending by ID
	accept    *Accept
	final     bool
	row       atomic.Pointer[Row]
	moved     atomic.Pointer[weak.Pointer[State]] // the equal state of a later generation, with a row
}

// A Row holds the transitions of a state. It must not be modified.
type Row struct {
	Live  ByteSet // bytes that have a transition
	Class [256]uint8
	Next  []*State // by class; nil if no lexeme continues
}

// NewAutomaton returns an Automaton for lexemes of the space. It holds about limit derivatives,
// and states in proportion.
func NewAutomaton(space *Space, limit int) *Automaton {
	a := &Automaton{base: space, limit: limit}
	a.gen = a.begin()
	return a
}

func (a *Automaton) begin() *generation {
	g := &generation{space: NewSpace(a.limit), states: map[string]*State{}, accepts: map[string]*Accept{}, keys: map[int]map[Expr]Key{}}
	g.imports = imports{from: a.base, to: g.space, made: map[Expr]Expr{}}
	return g
}

// Work returns the total work that a has done, in units of some tens of nanoseconds. Callers that
// walk automata of untrusted expressions use it to bound their time.
func (a *Automaton) Work() int64 { return a.work.Load() }

// unitBytes is the approximate size of an expression or state, in bytes.
const unitBytes = 128

// Kept returns the approximate size of the current generation in bytes.
func (a *Automaton) Kept() int64 { return unitBytes * a.kept.Load() }

// Start returns the state before any text of the lexemes, whose IDs ascend. It returns nil if all
// lexemes are empty sets.
func (a *Automaton) Start(lexemes []Lexeme) (*State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.base.Err(); err != nil {
		return nil, err
	}
	return a.retry(func(g *generation) (*State, error) {
		return g.enter(a, lexemes, &g.imports)
	})
}

// fewRows is the number of rows that a generation should at least have room for.
const fewRows = 32

// retry calls build, and again in a new generation if the first one is full. It fails if a fresh
// generation is too small, or two in a row end with few rows.
func (a *Automaton) retry(build func(*generation) (*State, error)) (*State, error) {
	for {
		before := a.gen.space.work + a.gen.space.used
		st, err := build(a.gen)
		a.work.Add(int64(a.gen.space.work + a.gen.space.used - before))
		if err == nil {
			a.kept.Store(int64(a.gen.space.used + a.gen.size))
			return st, nil
		}
		short := a.gen.rows < fewRows
		fresh := before == 0
		a.gen = a.begin()
		if fresh || short && a.short {
			a.short = false
			return nil, fmt.Errorf("rx: an automaton of %d expressions: %w", a.limit, err)
		}
		a.short = short
	}
}

// enter returns the state of g for lexemes of another space.
func (g *generation) enter(a *Automaton, lexemes []Lexeme, m *imports) (*State, error) {
	m.from.mu.Lock()
	own := make([]Lexeme, 0, len(lexemes))
	for _, l := range lexemes {
		own = append(own, Lexeme{l.ID, m.expr(m.from.known(l.Set))})
	}
	m.from.mu.Unlock()
	return g.state(a, own)
}

// state returns the state of the lexemes that are not empty sets, or nil if all are.
func (g *generation) state(a *Automaton, lexemes []Lexeme) (*State, error) {
	lexemes = slices.DeleteFunc(lexemes, func(l Lexeme) bool { return g.space.isEmpty(l.Set) })
	if err := g.space.err; err != nil {
		return nil, err
	}
	if len(lexemes) == 0 {
		return nil, nil
	}
	buf := g.buffer[:0]
	for _, l := range lexemes {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(l.ID))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(l.Set))
	}
	g.buffer = buf
	if st := g.states[string(buf)]; st != nil {
		return st, nil
	}
	if g.size += 8 + len(lexemes); g.size > a.limit {
		return nil, ErrTooLarge
	}
	st := &State{automaton: a, gen: g, lexemes: slices.Clone(lexemes), final: true}
	var ends []int32
	for _, l := range lexemes {
		if g.space.nodes[l.Set].nullable {
			ends = append(ends, l.ID)
		}
		st.final = st.final && l.Set == Empty
	}
	g.states[string(buf)] = st
	if len(ends) > 0 {
		st.accept = g.accepting(ends)
	}
	return st, nil
}

// accepting returns the Accept of the lexemes with these IDs.
func (g *generation) accepting(ids []int32) *Accept {
	buf := g.buffer[:0]
	for _, id := range ids {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
	}
	g.buffer = buf
	a := g.accepts[string(buf)]
	if a == nil {
		a = &Accept{slices.Clone(ids)}
		g.accepts[string(buf)] = a
	}
	return a
}

// Automaton returns the automaton of st.
func (st *State) Automaton() *Automaton { return st.automaton }

// Slots appends the indexes of the lexemes of accept among those of st.
func (st *State) Slots(accept *Accept, to []int) []int {
	n := 0
	for _, id := range accept.IDs {
		for n < len(st.lexemes) && st.lexemes[n].ID != id {
			n++
		}
		to = append(to, n)
	}
	return to
}

// AcceptOf returns the Accept of the lexemes of st at these slots, which ascend.
func (st *State) AcceptOf(slots []int) *Accept {
	ids := make([]int32, len(slots))
	for i, n := range slots {
		ids[i] = st.lexemes[n].ID
	}
	a := st.automaton
	a.mu.Lock()
	defer a.mu.Unlock()
	return st.gen.accepting(ids)
}

// Accept returns the lexemes that end in st, or nil if none does.
func (st *State) Accept() *Accept { return st.accept }

// Final reports whether no byte may follow.
func (st *State) Final() bool { return st.final }

// Next returns the state after b, or nil if no lexeme continues with b. Each lexeme of the state
// can be completed. The error is [ErrTooLarge].
func (st *State) Next(b byte) (*State, error) {
	r, err := st.Row()
	if err != nil {
		return nil, err
	}
	return r.Next[r.Class[b]], nil
}

// Built returns the row of st, or nil if it is not built yet.
func (st *State) Built() *Row {
	if r := st.row.Load(); r != nil {
		return r
	}
	if to := st.moved.Load(); to != nil {
		if at := to.Value(); at != nil {
			return at.row.Load()
		}
	}
	return nil
}

// Row returns the row of st and builds it if necessary. The error is [ErrTooLarge].
func (st *State) Row() (*Row, error) {
	if r := st.Built(); r != nil {
		return r, nil
	}
	a := st.automaton
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := st.Built(); r != nil {
		return r, nil
	}
	at, err := a.retry(func(g *generation) (*State, error) {
		at := st
		if g != st.gen {
			var err error
			if at, err = g.enter(a, st.lexemes, &imports{from: st.gen.space, to: g.space, made: map[Expr]Expr{}}); err != nil {
				return nil, err
			}
			if at.row.Load() != nil {
				return at, nil
			}
		}
		return at, at.derive()
	})
	if err != nil {
		return nil, err
	}
	if at != st {
		// The pointer is weak, so that an old state does not keep all later generations alive.
		to := weak.Make(at)
		st.moved.Store(&to)
	}
	return at.row.Load(), nil
}

// derive builds the row of st, a state of the current generation.
func (st *State) derive() error {
	g := st.gen
	g.space.spend(256)
	r := &Row{}
	for rest := AllBytes; !rest.IsEmpty(); {
		b := rest.First()
		on := rest
		lexemes := g.lexemes[:0]
		for _, l := range st.lexemes {
			d, same := g.space.derive(l.Set, b)
			on = on.And(same)
			if d != Nothing {
				lexemes = append(lexemes, Lexeme{l.ID, d})
			}
		}
		g.space.spend(len(st.lexemes))
		g.lexemes = lexemes
		if g.space.err != nil {
			return g.space.err
		}
		next, err := g.state(st.automaton, lexemes)
		if err != nil {
			return err
		}
		class := slices.Index(r.Next, next)
		if class < 0 {
			class = len(r.Next)
			r.Next = append(r.Next, next)
		}
		if next != nil {
			r.Live = r.Live.Or(on)
		}
		for i, w := range on {
			for ; w != 0; w &= w - 1 {
				r.Class[64*i+bits.TrailingZeros64(w)] = uint8(class)
			}
		}
		rest = rest.And(on.Not())
	}
	if g.size += 8 + len(r.Next)/2; g.size > st.automaton.limit {
		return ErrTooLarge
	}
	g.rows++
	st.row.Store(r)
	return nil
}
