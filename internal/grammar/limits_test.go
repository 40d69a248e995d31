package grammar_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

func mustGrammar(t testing.TB, b *grammar.Builder, start grammar.Symbol) *grammar.Grammar {
	t.Helper()
	g, err := b.Grammar(start)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A text can drive the parser up to its limits, and no further.
func TestTextLimits(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(b *grammar.Builder) grammar.Symbol
		text  string
	}{
		{"ambiguous", func(b *grammar.Builder) grammar.Symbol {
			s := b.Rule("s")
			b.Define(s, []grammar.Symbol{s, s}, []grammar.Symbol{s, s, s}, []grammar.Symbol{b.Lexeme(b.Space().Literal("a"))}, nil)
			return s
		}, strings.Repeat("a", 10_000)},
		{"counters", func(b *grammar.Builder) grammar.Symbol {
			s := b.Space()
			any := s.Bytes(rx.ByteRange('a', 'b'))
			return b.Lexeme(s.Concat(s.Repeat(any, 0, -1), s.Literal("a"), s.Repeat(any, 1_000_000, 1_000_000)))
		}, strings.Repeat("ab", 5_000)},
		{"lexemes", func(b *grammar.Builder) grammar.Symbol {
			then := b.Then(b.Space().Repeat(b.Space().Literal("a"), 1, -1), func(text []byte) grammar.Symbol {
				return b.Lexeme(b.Space().Literal(string(text)))
			})
			s := b.Rule("s")
			b.Define(s, []grammar.Symbol{s, then}, nil)
			return s
		}, strings.Repeat("a", 10_000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := grammar.NewBuilder(grammar.Limits{Items: 1000, Derivatives: 10_000})
			s, ok := mustGrammar(t, b, test.build(b)).Start().Bytes([]byte(test.text))
			if ok || !errors.Is(s.Err(), grammar.ErrLimit) {
				t.Errorf("%v, %v", ok, s.Err())
			}
		})
	}
}

// Loops and recursion at either end take no memory for the text already read.
func TestLongTextsTakeNoMemory(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(b *grammar.Builder) grammar.Symbol
		text  string
	}{
		{"list", list, "[" + strings.Repeat("123,", 100_000) + "4]"},
		{"left", func(b *grammar.Builder) grammar.Symbol {
			s := b.Rule("s")
			b.Define(s, []grammar.Symbol{s, b.Lexeme(b.Space().Literal("a"))}, nil)
			return s
		}, strings.Repeat("a", 400_000)},
		{"right", func(b *grammar.Builder) grammar.Symbol {
			s, q := b.Rule("s"), b.Rule("q")
			a := b.Lexeme(b.Space().Literal("a"))
			b.Define(s, []grammar.Symbol{a, q}, nil)
			b.Define(q, []grammar.Symbol{s}, []grammar.Symbol{a, a, s}, []grammar.Symbol{q})
			return s
		}, strings.Repeat("a", 400_000)},
		{"text", func(b *grammar.Builder) grammar.Symbol {
			s := b.Space()
			return b.Lexeme(s.Concat(s.Literal(`"`), s.Repeat(s.Bytes(rx.BytesOf('"').Not()), 0, 1_000_000), s.Literal(`"`)))
		}, `"` + strings.Repeat("text", 100_000) + `"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := grammar.NewBuilder(grammar.Limits{})
			g := mustGrammar(t, b, test.build(b))
			before := heap()
			s, ok := g.Start().Bytes([]byte(test.text))
			if !ok || !s.Ends() {
				t.Fatal(ok, s.Err())
			}
			if more := heap() - before; more > 64<<20 {
				t.Errorf("%d bytes", more)
			} else {
				t.Logf("%d bytes of %d of text", more, len(test.text))
			}
			runtime.KeepAlive(g)
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Brackets take memory while they are open.
func TestNesting(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	g := mustGrammar(t, b, list(b))
	const depth = 20_000
	s, ok := g.Start().Bytes([]byte(strings.Repeat("[", depth)))
	if !ok {
		t.Fatal(s.Err())
	}
	s, ok = s.Bytes([]byte("1" + strings.Repeat("]", depth)))
	if !ok || !s.Ends() {
		t.Fatal(ok, s.Err())
	}
}

// Callers may keep every state of a text.
func TestKeptStatesAreSmall(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	s := mustGrammar(t, b, list(b)).Start()
	before := heap()
	const n = 100_000
	states := make([]grammar.State, 0, n)
	for i := range n {
		s, _ = s.Bytes([]byte("[1,22,333,"[i%10 : i%10+1]))
		if i%10 == 9 {
			s, _ = s.Bytes([]byte("4],")) // closes the innermost list
		}
		states = append(states, s)
	}
	each := (heap() - before) / n
	if each > 1000 {
		t.Errorf("a state takes %d bytes", each)
	}
	t.Logf("a state takes %d bytes", each)
	runtime.KeepAlive(states)
}
