package ebnf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A naive recognizer records for each rule and position where the rule may end. It repeats until it
// learns nothing new.
type naive struct {
	s     *rx.Space
	rules []Rule
	text  string
	ends  [][][]bool // [rule][begin][end]
}

func recognise(s *rx.Space, rules []Rule, text string) bool {
	n := &naive{s: s, rules: rules, text: text}
	for range rules {
		table := make([][]bool, len(text)+1)
		for i := range table {
			table[i] = make([]bool, len(text)+1)
		}
		n.ends = append(n.ends, table)
	}
	for changed := true; changed; {
		changed = false
		for r := range rules {
			for i := range len(text) + 1 {
				for _, j := range n.node(rules[r].Body, i) {
					if !n.ends[r][i][j] {
						n.ends[r][i][j], changed = true, true
					}
				}
			}
		}
	}
	return n.ends[0][0][len(text)]
}

func (n *naive) node(x *Node, i int) []int {
	var out []int
	switch x.kind {
	case kindLexeme:
		e := x.expr
		for j := i; ; j++ {
			if n.s.Nullable(e) {
				out = append(out, j)
			}
			if j == len(n.text) {
				break
			}
			e = n.s.Derive(e, n.text[j])
		}
	case kindRef:
		for j, ok := range n.ends[x.rule][i] {
			if ok {
				out = append(out, j)
			}
		}
	case kindCat:
		out = []int{i}
		for _, sub := range x.subs {
			out = n.each(sub, out)
		}
	case kindAlt:
		for _, sub := range x.subs {
			out = append(out, n.node(sub, i)...)
		}
	case kindRepeat:
		at := []int{i}
		for k := 0; k <= len(n.text)+1 || k <= x.min; k++ {
			if k >= x.min {
				out = append(out, at...)
			}
			if k == x.max {
				break
			}
			at = n.each(x.subs[0], at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (n *naive) each(x *Node, at []int) []int {
	var out []int
	for _, j := range at {
		out = append(out, n.node(x, j)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func node(t *rapid.T, s *rx.Space, rules, depth int) *Node {
	kinds := 6
	if depth == 0 {
		kinds = 3
	}
	sub := func() *Node { return node(t, s, rules, depth-1) }
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return Lexeme(s.Literal(rapid.SampledFrom([]string{"", "a", "b", "ab", "aa"}).Draw(t, "text")), 1)
	case 1:
		return Lexeme(s.Repeat(s.Literal("b"), 0, rapid.IntRange(-1, 2).Draw(t, "max")), 1)
	case 2:
		return Ref(rapid.IntRange(0, rules-1).Draw(t, "rule"))
	case 3:
		return Cat(sub(), sub())
	case 4:
		return Alt(sub(), sub())
	}
	low := rapid.IntRange(0, 3).Draw(t, "min")
	high := rapid.IntRange(-1, 5).Draw(t, "max")
	if high >= 0 {
		high = max(low, high)
	}
	return Repeat(sub(), low, high)
}

func TestSameLanguage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := grammar.NewBuilder(grammar.Limits{})
		rules := make([]Rule, rapid.IntRange(1, 4).Draw(t, "rules"))
		for i := range rules {
			rules[i] = Rule{fmt.Sprint("r", i), node(t, b.Space(), len(rules), 3)}
		}
		texts := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("aab")), 0, 7, -1), 6, 6).Draw(t, "texts")
		var want []bool
		for _, text := range texts {
			want = append(want, recognise(b.Space(), rules, text))
		}
		symbol, err := Compile(b, rules, 0)
		var endless *Endless
		if errors.As(err, &endless) {
			if slices.Contains(want, true) && endless.Rule == 0 {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grammar(symbol)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			s, ok := g.Start().Bytes([]byte(text))
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			if got := ok && s.Ends(); got != want[i] {
				t.Fatalf("%q: fits = %v", text, got)
			}
		}
	})
}

func TestEndless(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	a := func() *Node { return Lexeme(b.Space().Literal("a"), 1) }
	_, err := Compile(b, []Rule{{"root", Alt(a(), Ref(1))}, {"b", Cat(a(), Ref(1))}}, 0)
	want := "the rule b never ends: each of its alternatives needs a rule that needs it again; add an alternative without that"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := Compile(b, []Rule{{"root", a()}, {"b", Ref(1)}}, 0); err != nil {
		t.Errorf("a rule that stands nowhere: %v", err)
	}
}

func TestRegularIsOneLexeme(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	a := Lexeme(b.Space().Literal("a"), 1)
	symbol, err := Compile(b, []Rule{{"root", Cat(a, Repeat(Ref(1), 0, 1000))}, {"b", Lexeme(b.Space().Literal("b"), 1)}}, 0)
	if err != nil || !strings.HasPrefix(symbol.String(), "lexeme") {
		t.Errorf("got %v, %v", symbol, err)
	}
}

// A lexeme larger than the limit for joining stays a lexeme.
func TestLargeLexeme(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	a := func() *Node { return Lexeme(b.Space().Literal("a"), 10*maxSize) }
	symbol, err := Compile(b, []Rule{{"root", Alt(Cat(a(), a()), Repeat(a(), 2, 4))}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Grammar(symbol); err != nil {
		t.Fatal(err)
	}
}

// Counts of nodes that are not lexemes are expanded only as far as a text reaches.
func TestLargeCounts(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	lit := func(s string) *Node { return Lexeme(b.Space().Literal(s), len(s)) }
	rules := []Rule{
		{"root", Repeat(Repeat(Ref(1), 2, 1<<24), 0, 1<<24)},
		{"p", Alt(Cat(lit("("), Ref(1), lit(")")), lit("x"))},
	}
	symbol, err := Compile(b, rules, 0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grammar(symbol)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := g.Start().Bytes([]byte(strings.Repeat("((x))x", 50)))
	if !ok || !s.Ends() {
		t.Error("a text that fits does not")
	}
}
