package grammar_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// agree fails if the mask of s differs from a trial of every token. It returns the tokens that fit.
func agree(t interface{ Fatalf(string, ...any) }, s grammar.State, v *grammar.Vocabulary) []int32 {
	words := make([]uint32, v.Words()+1)
	for i := range words {
		words[i] = ^uint32(0)
	}
	for range 2 { // computed, then cached
		if err := s.Mask(v, words); err != nil {
			t.Fatalf("%v", err)
		}
		for id := range int32(32 * len(words)) {
			_, want := s.Token(v, id)
			if got := words[id/32]>>(id%32)&1 != 0; got != want {
				t.Fatalf("token %d: %v, want %v", id, got, want)
			}
		}
	}
	var ids []int32
	for id := range int32(32 * len(words)) {
		if words[id/32]>>(id%32)&1 != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

var anyMaskToy = toyOf("a", "b", "ab", "ba", "a?", "b*", "a+", "[ab]+", "(ab)*", "!(.*aa)", "", "<a>", "<b>", "#3", "^5", "@", "&[ab]{1,3}", "%", "%fits", "[ab]{0,3}", "[ab]{2,5}b", "[ab]{0,20}", "[ab]{9,30}b", "!(.{0,2}aa)")

func init() {
	ab := func(s *rx.Space) rx.Expr { return s.Bytes(rx.BytesOf('a', 'b')) }
	toyLexemes["[ab]{0,3}"] = func(s *rx.Space) rx.Expr { return s.Repeat(ab(s), 0, 3) }
	toyLexemes["[ab]{2,5}b"] = func(s *rx.Space) rx.Expr { return s.Concat(s.Repeat(ab(s), 2, 5), s.Literal("b")) }
	toyLexemes["[ab]{0,20}"] = func(s *rx.Space) rx.Expr { return s.Repeat(ab(s), 0, 20) }
	toyLexemes["[ab]{9,30}b"] = func(s *rx.Space) rx.Expr { return s.Concat(s.Repeat(ab(s), 9, 30), s.Literal("b")) }
	toyLexemes["!(.{0,2}aa)"] = func(s *rx.Space) rx.Expr {
		return s.Not(s.Concat(s.Repeat(s.Bytes(rx.AllBytes), 0, 2), s.Literal("aa")))
	}
}

func TestMaskIsEveryTokenThatFits(t *testing.T) { rapid.Check(t, maskIsEveryTokenThatFits) }

func maskIsEveryTokenThatFits(t *rapid.T) {
	texts := rapid.OneOf(rapid.StringMatching(`[ab]{1,6}`), rapid.SampledFrom([]string{"<a>", "<", "a>", "b>", "a<", "<b>a", "<a>b"}))
	defer grammar.Tune(rapid.SampledFrom([]int{0, 1, 3, 256}).Draw(t, "outside"), rapid.SampledFrom([]int{-1, 0, 256}).Draw(t, "narrow"), rapid.SampledFrom([][]int{{}, {1, 2, 4}, {3}}).Draw(t, "tiers")...)()
	var pieces [][]byte
	for _, text := range rapid.SliceOfN(texts, 1, 40).Draw(t, "pieces") {
		pieces = append(pieces, []byte(text))
	}
	pieces = append(pieces, nil, []byte{}, []byte("a"), []byte("b"), []byte("\xff"))
	special := map[string]int32{}
	end := []int32{int32(len(pieces)) + 40}
	if rapid.Bool().Draw(t, "special") {
		special["<a>"] = int32(len(pieces))
		special["<c>"] = int32(len(pieces)) + 2
	}
	if rapid.Bool().Draw(t, "end is special") {
		special["<b>"] = end[0]
	}
	v := grammar.NewVocabulary(pieces, special, end)
	for range rapid.IntRange(1, 3).Draw(t, "toys") { // toys share v's cache
		masksAgree(t, anyMaskToy.Draw(t, "toy"), v, pieces)
	}
}

// masksAgree compares the masks along a random text of y.
func masksAgree(t *rapid.T, y toy, v *grammar.Vocabulary, pieces [][]byte) {
	limits := grammar.Limits{}
	if rapid.Bool().Draw(t, "forgetful") {
		limits.Sets = 10
	}
	g, err := y.build(grammar.NewBuilder(limits))
	if err != nil {
		t.Fatal(err)
	}
	s := g.Start()
	path := []string{}
	for range 6 {
		ids := agree(&where{t, func() string { return fmt.Sprintf("%s after %q", y, path) }}, s, v)
		if len(ids) == 0 {
			// A vocabulary that lacks some texts may lead to a dead end.
			break
		}
		id := rapid.SampledFrom(ids).Draw(t, "token")
		var ok bool
		if s, ok = s.Token(v, id); !ok {
			t.Fatalf("%s after %q: token %d does not fit after all", y, path, id)
		}
		if int(id) < len(pieces) {
			path = append(path, string(pieces[id]))
		} else {
			path = append(path, fmt.Sprint(id))
		}
	}
}

// where adds the grammar and the text to a failure message.
type where struct {
	t  *rapid.T
	of func() string
}

func (w *where) Fatalf(format string, args ...any) {
	w.t.Fatalf("%s: "+format, append([]any{w.of()}, args...)...)
}

func TestTokens(t *testing.T) {
	pieces := [][]byte{[]byte("a"), []byte("b"), []byte("ab"), nil, []byte("<"), []byte("t>"), []byte("<t>")}
	v := grammar.NewVocabulary(pieces, map[string]int32{"<t>": 6, "<e>": 7}, []int32{7})
	for _, test := range []struct {
		name    string
		symbols func(b *grammar.Builder) []grammar.Symbol
		steps   []int32
		then    []int32
	}{
		{"special", func(b *grammar.Builder) []grammar.Symbol { return []grammar.Symbol{b.Special("<t>")} }, nil, []int32{6}},
		{"special as text", func(b *grammar.Builder) []grammar.Symbol { return []grammar.Symbol{b.Special("<u>")} }, nil, []int32{4}},
		{"text that looks special", func(b *grammar.Builder) []grammar.Symbol {
			return []grammar.Symbol{b.Lexeme(b.Space().Literal("<t>"))}
		}, nil, []int32{4}},
		{"end", func(b *grammar.Builder) []grammar.Symbol { return []grammar.Symbol{b.Special("<t>")} }, []int32{6}, []int32{7}},
		{"after the end", func(b *grammar.Builder) []grammar.Symbol { return []grammar.Symbol{b.Special("<t>")} }, []int32{6, 7}, []int32{7}},
		{"end token within", func(b *grammar.Builder) []grammar.Symbol {
			return []grammar.Symbol{b.Special("<e>"), b.Lexeme(b.Space().Literal("a"))}
		}, []int32{7}, []int32{0}},
		{"number", func(b *grammar.Builder) []grammar.Symbol { return []grammar.Symbol{b.Token(2), b.Token(3)} }, []int32{2}, []int32{3}},
		{"not", func(b *grammar.Builder) []grammar.Symbol {
			return []grammar.Symbol{b.NotTokens([]int32{0, 1}, []string{"<t>"}), b.Token(0)}
		}, nil, []int32{2, 3, 4, 5}},
		{"any special", func(b *grammar.Builder) []grammar.Symbol { return []grammar.Symbol{b.AnySpecial()} }, nil, []int32{6}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := grammar.NewBuilder(grammar.Limits{})
			top := b.Rule("top")
			b.Define(top, test.symbols(b))
			g, err := b.Grammar(top)
			if err != nil {
				t.Fatal(err)
			}
			s := g.Start()
			for _, id := range test.steps {
				var ok bool
				if s, ok = s.Token(v, id); !ok {
					t.Fatal(id)
				}
			}
			if got := agree(t, s, v); fmt.Sprint(got) != fmt.Sprint(test.then) {
				t.Errorf("%v, want %v", got, test.then)
			}
		})
	}
}

func TestMaskOfThen(t *testing.T) {
	b := grammar.NewBuilder(grammar.Limits{})
	s := b.Space()
	letters := s.Bytes(rx.ByteRange('a', 'c'))
	tag := b.Then(s.Concat(s.Literal("<"), s.Repeat(letters, 1, 3), s.Literal(">")), func(text []byte) grammar.Symbol {
		if string(text) == "<c>" {
			return grammar.Symbol{}
		}
		own := grammar.NewBuilder(grammar.Limits{Derivatives: 1000})
		return own.Lexeme(own.Space().Literal(strings.Replace(string(text), "<", "</", 1)))
	})
	g, err := b.Grammar(tag)
	if err != nil {
		t.Fatal(err)
	}
	var pieces [][]byte
	for _, text := range allTexts("<a>/", 4)[1:] {
		pieces = append(pieces, []byte(text))
	}
	pieces = append(pieces, []byte("<c>"), []byte("<b></b>"), []byte("<b></a>"))
	v := grammar.NewVocabulary(pieces, nil, []int32{int32(len(pieces))})
	for _, text := range []string{"", "<", "<a", "<aa></", "<ab></a", "<aaa></aaa>"} {
		state, ok := g.Start().Bytes([]byte(text))
		if !ok {
			t.Fatal(text)
		}
		agree(t, state, v)
	}
}
