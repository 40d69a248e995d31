package grammar_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

func TestAgreesWithTryingEverything(t *testing.T) {
	const length = 5
	all := allTexts("ab", length)
	rapid.Check(t, func(t *rapid.T) { agreesWithTryingEverything(t, all, length) })
}

func agreesWithTryingEverything(t *rapid.T, all []string, length int) {
	y := anyToy.Draw(t, "toy")
	want := y.language(all, length)
	limits := grammar.Limits{}
	if rapid.Bool().Draw(t, "forgetful") {
		limits.Sets = 10 // the memo is dropped all the time
	}
	g, err := y.build(grammar.NewBuilder(limits))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		s, ok := g.Start().Bytes([]byte(text))
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		if ok != want.prefixes[text] {
			t.Fatalf("%s: %q may be continued: %v, want %v", y, text, ok, want.prefixes[text])
		}
		if ok && s.Ends() != want.texts[text] {
			t.Fatalf("%s: %q is whole: %v, want %v", y, text, s.Ends(), want.texts[text])
		}
		if !ok {
			continue
		}
		forced := s.Forced(3)
		for _, more := range all {
			next := text + more
			if !want.prefixes[next] || len(next) > length {
				continue
			}
			if n := min(len(forced), len(more)); string(forced[:n]) != more[:n] {
				t.Fatalf("%s: %q forces %q, but %q may follow", y, text, forced, more)
			}
			if want.texts[next] && len(more) < len(forced) {
				t.Fatalf("%s: %q forces %q, but may end after %q", y, text, forced, more)
			}
		}
	}
}

// A text read in pieces leads to the same state however it is cut.
func TestCuts(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	g, err := b.Grammar(list(b))
	if err != nil {
		t.Fatal(err)
	}
	const text = `[1,[22,[]],333]`
	for i := range len(text) {
		s, ok := g.Start().Bytes([]byte(text[:i]))
		if !ok || s.Ends() {
			t.Fatalf("%q: %v, ends %v", text[:i], ok, s.Ends())
		}
		whole, ok := s.Bytes([]byte(text[i:]))
		if !ok || !whole.Ends() {
			t.Fatalf("%q after %q: %v", text[i:], text[:i], ok)
		}
		if _, ok := whole.Bytes([]byte("]")); ok {
			t.Fatal("more after the end")
		}
	}
}

// list returns nested lists of numbers.
func list(b *grammar.Builder) grammar.Symbol {
	s := b.Space()
	value, items := b.Rule("value"), b.Rule("items")
	digits := b.Lexeme(s.Repeat(s.Bytes(rx.ByteRange('0', '9')), 1, -1))
	open, closes, comma := b.Lexeme(s.Literal("[")), b.Lexeme(s.Literal("]")), b.Lexeme(s.Literal(","))
	b.Define(items, []grammar.Symbol{value}, []grammar.Symbol{items, comma, value})
	b.Define(value, []grammar.Symbol{digits}, []grammar.Symbol{open, closes}, []grammar.Symbol{open, items, closes})
	return value
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(b *grammar.Builder) grammar.Symbol
		is    error
		says  string
	}{
		{"undefined", func(b *grammar.Builder) grammar.Symbol {
			r := b.Rule("top")
			b.Define(r, []grammar.Symbol{b.Rule("missing")})
			return r
		}, grammar.ErrGrammar, `"missing"`},
		{"twice", func(b *grammar.Builder) grammar.Symbol {
			r := b.Rule("top")
			b.Define(r, nil)
			b.Define(r, nil)
			return r
		}, grammar.ErrGrammar, `"top"`},
		{"no end", func(b *grammar.Builder) grammar.Symbol {
			r, q := b.Rule("top"), b.Rule("other")
			b.Define(r, []grammar.Symbol{q}, []grammar.Symbol{})
			b.Define(q, []grammar.Symbol{b.Lexeme(b.Space().Literal("a")), q})
			return r
		}, grammar.ErrGrammar, `"other"`},
		{"no strings", func(b *grammar.Builder) grammar.Symbol { return b.Lexeme(rx.Nothing) }, grammar.ErrGrammar, "no strings"},
		{"zero", func(b *grammar.Builder) grammar.Symbol { return grammar.Symbol{} }, grammar.ErrGrammar, ""},
		{"zero inside", func(b *grammar.Builder) grammar.Symbol {
			r := b.Rule("top")
			b.Define(r, []grammar.Symbol{{}})
			return r
		}, grammar.ErrGrammar, `"top"`},
		{"rules", func(b *grammar.Builder) grammar.Symbol {
			r := b.Rule("top")
			for range 1 << 20 {
				b.Rule("another")
			}
			b.Define(r, nil)
			return r
		}, grammar.ErrLimit, ""},
		{"expressions", func(b *grammar.Builder) grammar.Symbol {
			return b.Lexeme(b.Space().Literal(strings.Repeat("ab", 1<<20)))
		}, grammar.ErrLimit, ""},
		{"endless first", func(b *grammar.Builder) grammar.Symbol {
			var count func(n int) grammar.Symbol
			a := b.Lexeme(b.Space().Literal("a"))
			count = func(n int) grammar.Symbol {
				return b.Lazy("count", func() [][]grammar.Symbol { return [][]grammar.Symbol{{count(n + 1), a}, {a}} })
			}
			return count(0)
		}, grammar.ErrLimit, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := grammar.NewBuilder(grammar.Limits{})
			_, err := b.Grammar(test.build(b))
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Counting with lazy rules: a^n b^n, with one rule for each n.
func TestLazyCounts(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	a, z := b.Lexeme(b.Space().Literal("a")), b.Lexeme(b.Space().Literal("b"))
	made := map[int]grammar.Symbol{}
	var count func(n int) grammar.Symbol
	count = func(n int) grammar.Symbol {
		if _, ok := made[n]; !ok {
			made[n] = b.Lazy(fmt.Sprint("count", n), func() [][]grammar.Symbol {
				rest := []grammar.Symbol{}
				for range n {
					rest = append(rest, z)
				}
				return [][]grammar.Symbol{{a, count(n + 1)}, rest}
			})
		}
		return made[n]
	}
	g, err := b.Grammar(count(0))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		text := strings.Repeat("a", n) + strings.Repeat("b", n)
		s, ok := g.Start().Bytes([]byte(text))
		if !ok || !s.Ends() {
			t.Fatal(n, ok)
		}
		if _, ok := s.Bytes([]byte("b")); ok {
			t.Fatal(n)
		}
	}
}

// Then reads a length and that many bytes: what follows depends on the text.
func TestThen(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	s := b.Space()
	digits := s.Repeat(s.Bytes(rx.ByteRange('0', '9')), 1, 3)
	counted := b.Then(s.Concat(digits, s.Literal(":")), func(text []byte) grammar.Symbol {
		n, _ := strconv.Atoi(strings.TrimSuffix(string(text), ":"))
		own := grammar.NewBuilder(grammar.Limits{Derivatives: 10_000})
		return own.Lexeme(own.Space().Repeat(own.Space().Bytes(rx.ByteRange('a', 'z')), n, n))
	})
	items := b.Rule("items")
	b.Define(items, []grammar.Symbol{items, counted, b.Lexeme(s.Literal(";"))}, nil)
	g, err := b.Grammar(items)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct{ ok, ends bool }{
		"":               {true, true},
		"3:abc;":         {true, true},
		"3:abc;0:;":      {true, true},
		"12:abcabcabcab": {true, false},
		"3:ab;":          {false, false},
		"3:abcd":         {false, false},
		"2:ab;2:ab;1:a":  {true, false},
	} {
		state, ok := g.Start().Bytes([]byte(text))
		if ok != want.ok || ok && state.Ends() != want.ends {
			t.Errorf("%q: %v, ends %v", text, ok, state.Ends())
		}
	}
}

// Two texts of one length, told apart by where they begin.
func TestThenIsAmbiguous(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	s := b.Space()
	a := s.Bytes(rx.ByteRange('a', 'c'))
	twice := b.Then(s.Repeat(a, 0, 5), func(text []byte) grammar.Symbol { return b.Lexeme(s.Literal(string(text))) })
	top := b.Rule("top")
	b.Define(top, []grammar.Symbol{b.Lexeme(s.Repeat(a, 0, 2)), twice, b.Lexeme(s.Literal("."))})
	g, err := b.Grammar(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range allTexts("abc", 6) {
		want := false
		for skip := range 3 {
			if rest := len(text) - skip; rest >= 0 && rest%2 == 0 && text[skip:skip+rest/2] == text[skip+rest/2:] {
				want = true
			}
		}
		state, ok := g.Start().Bytes([]byte(text + "."))
		if ok != want || ok && !state.Ends() {
			t.Fatalf("%q: %v", text, ok)
		}
	}
}
