package grammar

import (
	"fmt"

	"github.com/realizar/realizar/internal/rx"
)

// A State is a position in a language after some text. It is immutable, so callers roll back by
// keeping an old State. It is safe for concurrent use. The zero State is not valid.
type State struct{ c *configuration }

type configuration struct {
	grammar *Grammar
	threads []thread
	ended   bool // an end token was read
	err     error
}

// A thread is one way to read the text: the lexemes of set are in state lex.
type thread struct {
	set     *set
	lex     *rx.State // nil before their first byte
	builder *Builder  // of the lexemes
	text    *text     // read so far by the lexemes, if it matters
}

// A text is a linked list of bytes in reverse order.
type text struct {
	before *text
	b      byte
	length int
}

func (t *text) add(b byte) *text {
	if t == nil {
		return &text{nil, b, 1}
	}
	return &text{t, b, t.length + 1}
}

// String returns the bytes in order.
func (t *text) String() string {
	if t == nil {
		return ""
	}
	return string(t.appendTo(nil))
}

// appendTo appends the bytes in order.
func (t *text) appendTo(buf []byte) []byte {
	if t == nil {
		return buf
	}
	from := len(buf)
	buf = append(buf, make([]byte, t.length)...)
	for ; t != nil; t = t.before {
		buf[from+t.length-1] = t.b
	}
	return buf
}

// Err returns the error of a text that was refused because it exceeds a limit, else nil.
func (s State) Err() error { return s.c.err }

// Ends reports whether the text so far is a complete text of the language.
func (s State) Ends() bool {
	if s.c.ended {
		return true
	}
	for _, t := range s.c.threads {
		if t.lex == nil && t.set.accepts {
			return true
		}
	}
	return false
}

// Bytes returns the state after text, and whether a text of the language can continue with it. If
// not, Bytes returns s, with [State.Err] set if a limit was exceeded.
func (s State) Bytes(text []byte) (State, bool) { return s.read(nil, text) }

// read is Bytes for the text of a token of v.
func (s State) read(v *Vocabulary, text []byte) (State, bool) {
	if len(text) == 0 {
		return s, true
	}
	g := s.c.grammar
	sc := g.begin()
	defer g.end(sc)
	sc.threads = append(sc.threads[:0], s.c.threads...)
	for _, b := range text {
		sc.work = 0
		sc.threads, sc.other = sc.other[:0], sc.threads
		if err := g.step(sc, v, b); err != nil {
			return s.fail(err), false
		}
		if len(sc.threads) == 0 {
			return s, false
		}
	}
	return State{&configuration{grammar: g, threads: append([]thread(nil), sc.threads...)}}, true
}

func (s State) fail(err error) State {
	c := *s.c
	c.err = err
	return State{&c}
}

// step advances the threads of sc.other by b to sc.threads.
func (g *Grammar) step(sc *scratch, v *Vocabulary, b byte) error {
	sc.ends = sc.ends[:0]
	for _, t := range sc.other {
		if t.lex != nil {
			if err := g.stepThread(sc, t, b); err != nil {
				return err
			}
			continue
		}
		states, err := sc.begin(t.set, v)
		if err != nil {
			return err
		}
		for _, st := range states {
			t.lex, t.builder = st.lex, st.builder
			if err := g.stepThread(sc, t, b); err != nil {
				return err
			}
		}
	}
	if len(sc.ends) == 0 {
		return nil
	}
	to, err := g.advance(sc, sc.ends)
	if err != nil {
		return err
	}
	if to != nil && to.lives() {
		sc.threads = append(sc.threads, thread{set: to})
	}
	return nil
}

// lives reports whether a text may end at s or continue.
func (s *set) lives() bool { return s.accepts || len(s.lexemes) > 0 || len(s.tokens) > 0 }

// stepThread advances one thread by b.
func (g *Grammar) stepThread(sc *scratch, t thread, b byte) error {
	row, err := sc.row(t.lex)
	if err != nil {
		return err
	}
	next := row.Next[row.Class[b]]
	if next == nil {
		return nil
	}
	t.lex = next
	if t.set.then {
		t.text = t.text.add(b)
	}
	if accept := next.Accept(); accept != nil {
		sc.ends = append(sc.ends, end{t.set, accept, t.builder, t.text, false})
	}
	if next.Final() {
		return nil
	}
	for _, have := range sc.threads {
		if have == t {
			return nil
		}
	}
	if len(sc.threads) == g.limits.Threads {
		return fmt.Errorf("grammar: more than %d ways to read the text: %w", g.limits.Threads, ErrLimit)
	}
	sc.threads = append(sc.threads, t)
	return nil
}

// Forced returns up to limit bytes with which every text must continue. It returns none if the text
// may end or a special token may follow.
func (s State) Forced(limit int) []byte {
	g := s.c.grammar
	sc := g.begin()
	defer g.end(sc)
	sc.threads = append(sc.threads[:0], s.c.threads...)
	var forced []byte
	for len(forced) < limit {
		sc.work = 0
		b, ok := sc.only()
		if !ok {
			break
		}
		forced = append(forced, b)
		sc.threads, sc.other = sc.other[:0], sc.threads
		if g.step(sc, nil, b) != nil {
			break
		}
	}
	return forced
}

// only returns the one byte with which the threads may continue. It returns false if there are
// several.
func (sc *scratch) only() (byte, bool) {
	var live rx.ByteSet
	for _, t := range sc.threads {
		states := []begun{{t.lex, t.builder}}
		if t.lex == nil {
			if t.set.accepts || len(t.set.tokens) > 0 {
				return 0, false
			}
			var err error
			if states, err = sc.begin(t.set, nil); err != nil {
				return 0, false
			}
		}
		for _, st := range states {
			row, err := sc.row(st.lex)
			if err != nil {
				return 0, false
			}
			live = live.Or(row.Live)
		}
	}
	if live.Len() != 1 {
		return 0, false
	}
	return live.First(), true
}
