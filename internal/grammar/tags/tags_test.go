package tags

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/grammar"
)

func fits(g *grammar.Grammar, text string) bool {
	s, ok := g.Start().Bytes([]byte(text))
	return ok && s.Ends()
}

// A toy is a tag with a fixed content.
type toy struct{ begin, content, end string }

// accepts implements the package documentation by exhaustive search.
func accepts(t Triggered, toys []toy, text string, first bool) bool {
	for end := range len(text) + 1 {
		if first && end > 0 {
			return false
		}
		seen := text[:end]
		for _, x := range toys {
			i := slices.IndexFunc(t.Triggers, func(s string) bool { return strings.HasPrefix(x.begin, s) })
			trigger := t.Triggers[i]
			at := end
			if !first {
				if !strings.HasSuffix(seen, trigger) {
					continue
				}
				at = end - len(trigger)
			}
			rest, ok := strings.CutPrefix(text[at:], x.begin+x.content+x.end)
			if ok && (t.StopAfterFirst && rest == "" || !t.StopAfterFirst && accepts(t, toys, rest, false)) {
				return true
			}
		}
		for _, s := range slices.Concat(t.Triggers, t.Excludes) {
			if strings.HasSuffix(seen, s) {
				return false
			}
		}
	}
	return !first
}

func TestTriggered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := func(low, high int) *rapid.Generator[string] {
			return rapid.StringOfN(rapid.SampledFrom([]rune("ab<")), low, high, -1)
		}
		x := Triggered{
			Triggers:       rapid.SliceOfNDistinct(word(1, 2), 1, 2, rapid.ID[string]).Draw(t, "triggers"),
			AtLeastOne:     rapid.Bool().Draw(t, "at least one"),
			StopAfterFirst: rapid.Bool().Draw(t, "stop after first"),
			Excludes:       rapid.SliceOfN(word(1, 3), 0, 1).Draw(t, "excludes"),
		}
		b := grammar.NewBuilder(grammar.Limits{})
		var toys []toy
		for _, trigger := range x.Triggers {
			for range rapid.IntRange(1, 2).Draw(t, "tags") {
				y := toy{trigger + word(0, 2).Draw(t, "begin"), word(0, 2).Draw(t, "content"), word(0, 2).Draw(t, "end")}
				toys = append(toys, y)
				x.Tags = append(x.Tags, Tag{Begin: y.begin, Content: b.Lexeme(b.Space().Literal(y.content)), End: y.end})
			}
		}
		symbol, err := x.Symbol(b, nil)
		if errors.Is(err, ErrTags) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grammar(symbol)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			text := word(0, 5).Draw(t, "text")
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				y := rapid.SampledFrom(toys).Draw(t, "toy")
				text += y.begin + y.content + y.end + word(0, 3).Draw(t, "more")
			}
			if got, want := fits(g, text), accepts(x, toys, text, x.AtLeastOne); got != want {
				t.Fatalf("%+v %q: fits = %v", toys, text, got)
			}
		}
	})
}

// Hundreds of triggers share one lexeme of free text.
func TestManyTriggers(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	var x Triggered
	for i := range 500 {
		x.Tags = append(x.Tags, Tag{Begin: fmt.Sprintf("<f=%d>", i), Content: b.Lexeme(b.Space().Literal("1")), End: "</f>"})
	}
	symbol, err := x.Symbol(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grammar(symbol)
	if err != nil {
		t.Fatal(err)
	}
	if text := "text <f=500> <f=499>1</f> <f=0>1</f>."; !fits(g, text) || fits(g, text+"<f=3>") {
		t.Error("the wrong texts fit")
	}
}

// The language contains valid UTF-8 only, but a prefix may end inside a character.
func TestUTF8(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	symbol, err := Triggered{Tags: []Tag{{Begin: "<x>", Content: b.Lexeme(b.Space().Literal("1"))}}}.Symbol(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grammar(symbol)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := g.Start().Bytes([]byte("a\xc3"))
	if !ok || s.Ends() {
		t.Error("half a character must be let through and be no end")
	}
	if s, ok = s.Bytes([]byte("\xa9<x>1")); !ok || !s.Ends() {
		t.Error("the other half, and a tag")
	}
	if _, ok := g.Start().Bytes([]byte("\xff")); ok {
		t.Error("a byte that is in no character was let through")
	}
}

// If a begin is a special token, free text cannot contain its text.
func TestSpecial(t *testing.T) {
	v := grammar.NewVocabulary([][]byte{[]byte("a"), []byte("<x"), []byte(">"), nil, nil}, map[string]int32{"<x>": 3, "<end>": 4}, []int32{4})
	b := grammar.NewBuilder(grammar.Limits{})
	x := Triggered{Tags: []Tag{{Begin: "<x>", Content: b.Lexeme(b.Space().Literal("a"))}}}
	symbol, err := x.Symbol(b, func(s string) bool { return s == "<x>" })
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grammar(symbol)
	if err != nil {
		t.Fatal(err)
	}
	mask := func(s grammar.State) uint32 {
		words := make([]uint32, 1)
		if err := s.Mask(v, words); err != nil {
			t.Fatal(err)
		}
		return words[0]
	}
	if got := mask(g.Start()); got != 0b11111 {
		t.Errorf("at the beginning %05b", got)
	}
	s, ok := g.Start().Token(v, 3)
	if !ok || mask(s) != 0b00001 {
		t.Errorf("after the special token %05b", mask(s))
	}
	s, ok = g.Start().Token(v, 1)
	if !ok || mask(s)&0b00100 != 0 {
		t.Errorf("free text spells the special token: %05b", mask(s))
	}
}

func TestErrors(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	one := b.Lexeme(b.Space().Literal("1"))
	for _, test := range []struct {
		x    Triggered
		want string
	}{
		{Triggered{}, "there are no tags"},
		{Triggered{Tags: []Tag{{Content: one}}}, "a trigger is empty"},
		{Triggered{Triggers: []string{"<"}, Tags: []Tag{{Begin: "x", Content: one}}}, `the begin "x" begins with none of the triggers ["<"]`},
		{Triggered{Triggers: []string{"<", "x"}, Tags: []Tag{{Begin: "x", Content: one}}}, `no tag begins with the trigger "<"`},
		{Triggered{Triggers: []string{"<f", "<"}, Tags: []Tag{{Begin: "<f", Content: one}}}, `the trigger "<f" begins as the trigger "<" and is never reached`},
		{Triggered{Triggers: []string{"<f"}, Excludes: []string{""}, Tags: []Tag{{Begin: "<f", Content: one}}}, `an excluded text is empty`},
		{Triggered{Triggers: []string{"<f"}, Excludes: []string{"<"}, Tags: []Tag{{Begin: "<f", Content: one}}}, `the trigger "<f" holds an excluded text`},
	} {
		_, err := test.x.Symbol(b, nil)
		if !errors.Is(err, ErrTags) || err.Error() != "structural tags: "+test.want {
			t.Errorf("got %v\nwant structural tags: %s", err, test.want)
		}
	}
}

func ExampleTriggered() {
	b := grammar.NewBuilder(grammar.Limits{})
	call := Triggered{
		Triggers: []string{"<call "},
		Tags:     []Tag{{Begin: "<call f>", Content: b.Lexeme(b.Space().Literal("{}")), End: "</call>"}},
	}
	symbol, err := call.Symbol(b, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := b.Grammar(symbol)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"No <call.", "So: <call f>{}</call>.", "<call g>{}</call>"} {
		fmt.Println(fits(g, text))
	}
	// Output:
	// true
	// true
	// false
}
