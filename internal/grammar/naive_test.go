package grammar_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A language is the texts of a language up to a length, and all prefixes of its texts up to that
// length.
type language struct{ texts, prefixes map[string]bool }

func newLanguage() language { return language{map[string]bool{}, map[string]bool{}} }

func (l language) add(text string) {
	l.texts[text] = true
	for n := range len(text) + 1 {
		l.prefixes[text[:n]] = true
	}
}

// A toy is a small grammar: rules over lexemes.
type toy struct {
	lexemes []string  // in the notation of terminal
	rules   [][][]int // of symbols: lexemes count from 0 up, rules from -1 down
	lazy    []bool
}

func (y toy) String() string {
	var out strings.Builder
	for i, alternatives := range y.rules {
		fmt.Fprintf(&out, "R%d =", i)
		for j, a := range alternatives {
			if j > 0 {
				out.WriteString(" |")
			}
			for _, s := range a {
				if s < 0 {
					fmt.Fprintf(&out, " R%d", -1-s)
				} else {
					fmt.Fprintf(&out, " /%s/", y.lexemes[s])
				}
			}
		}
		out.WriteString("; ")
	}
	return out.String()
}

// toyLexemes are the lexemes that toys are made of.
var toyLexemes = map[string]func(s *rx.Space) rx.Expr{
	"a":       func(s *rx.Space) rx.Expr { return s.Literal("a") },
	"b":       func(s *rx.Space) rx.Expr { return s.Literal("b") },
	"ab":      func(s *rx.Space) rx.Expr { return s.Literal("ab") },
	"ba":      func(s *rx.Space) rx.Expr { return s.Literal("ba") },
	"a?":      func(s *rx.Space) rx.Expr { return s.Repeat(s.Literal("a"), 0, 1) },
	"b*":      func(s *rx.Space) rx.Expr { return s.Repeat(s.Literal("b"), 0, -1) },
	"a+":      func(s *rx.Space) rx.Expr { return s.Repeat(s.Literal("a"), 1, -1) },
	"[ab]+":   func(s *rx.Space) rx.Expr { return s.Repeat(s.Bytes(rx.BytesOf('a', 'b')), 1, -1) },
	"(ab)*":   func(s *rx.Space) rx.Expr { return s.Repeat(s.Literal("ab"), 0, -1) },
	"!(.*aa)": func(s *rx.Space) rx.Expr { return s.Not(s.Concat(rx.Anything, s.Literal("aa"), rx.Anything)) },
	"":        func(s *rx.Space) rx.Expr { return rx.Empty },
}

// terminal returns the terminal with this name: one of toyLexemes; &e, a string of e twice; %, a
// string of [ab]{1,2} twice with an a between; <text>, a special token; #3, token 3; ^3, any token
// but 3; or @, any special token.
func terminal(b *grammar.Builder, name string) grammar.Symbol {
	id := int32(0)
	if len(name) > 1 {
		id = int32(name[1] - '0')
	}
	switch {
	case strings.HasPrefix(name, "<"):
		return b.Special(name)
	case strings.HasPrefix(name, "#"):
		return b.Token(id)
	case strings.HasPrefix(name, "^"):
		return b.NotTokens([]int32{id}, []string{"<a>"})
	case name == "@":
		return b.AnySpecial()
	case strings.HasPrefix(name, "%"):
		// A string of [ab]{1,2}, a, and the same string again.
		s := b.Space()
		var fits func([]byte) bool
		if name == "%fits" {
			fits = func(text []byte) bool { return string(text) != "ab" }
		}
		first, late := b.Bind(s.Repeat(s.Bytes(rx.BytesOf('a', 'b')), 1, 2), fits, func(text []byte) grammar.Symbol {
			own := grammar.NewBuilder(grammar.Limits{})
			return own.Lexeme(own.Space().Literal(string(text)))
		})
		rule := b.Rule(name)
		b.Define(rule, []grammar.Symbol{first, b.Lexeme(s.Literal("a")), late})
		return rule
	case name == "&[ab]{1,3}":
		s := b.Space()
		return b.Then(s.Repeat(s.Bytes(rx.BytesOf('a', 'b')), 1, 3), func(text []byte) grammar.Symbol {
			own := grammar.NewBuilder(grammar.Limits{})
			return own.Lexeme(own.Space().Literal(string(text)))
		})
	}
	return b.Lexeme(toyLexemes[name](b.Space()))
}

// anyToy draws grammars in which every rule matches a finite text.
var anyToy = toyOf("a", "b", "ab", "ba", "a?", "b*", "a+", "[ab]+", "(ab)*", "!(.*aa)", "", "&[ab]{1,3}", "%", "%fits")

func toyOf(names ...string) *rapid.Generator[toy] {
	return rapid.Custom(func(t *rapid.T) toy { return drawToy(t, names) })
}

func drawToy(t *rapid.T, names []string) toy {
	y := toy{lexemes: rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(t, "lexemes")}
	n := rapid.IntRange(1, 4).Draw(t, "rules")
	symbol := rapid.Custom(func(t *rapid.T) int { return rapid.IntRange(-n, len(y.lexemes)-1).Draw(t, "symbol") })
	for range n {
		y.rules = append(y.rules, rapid.SliceOfN(rapid.SliceOfN(symbol, 0, 4), 1, 4).Draw(t, "alternatives"))
		y.lazy = append(y.lazy, rapid.Bool().Draw(t, "lazy"))
	}
	// Drop alternatives that match no finite text.
	ends := make([]bool, n)
	hasEnd := func(a []int) bool {
		for _, s := range a {
			if s < 0 && !ends[-1-s] {
				return false
			}
		}
		return true
	}
	for range n {
		for i, alternatives := range y.rules {
			for _, a := range alternatives {
				ends[i] = ends[i] || hasEnd(a)
			}
		}
	}
	for i, alternatives := range y.rules {
		var kept [][]int
		for _, a := range alternatives {
			if hasEnd(a) {
				kept = append(kept, a)
			}
		}
		if len(kept) == 0 {
			kept = [][]int{{}} // only the start may refer to this rule
		}
		y.rules[i] = kept
	}
	return y
}

// build returns y's grammar.
func (y toy) build(b *grammar.Builder) (*grammar.Grammar, error) {
	lexemes := make([]grammar.Symbol, len(y.lexemes))
	for i, name := range y.lexemes {
		lexemes[i] = terminal(b, name)
	}
	rules := make([]grammar.Symbol, len(y.rules))
	body := func(i int) [][]grammar.Symbol {
		var all [][]grammar.Symbol
		for _, a := range y.rules[i] {
			var symbols []grammar.Symbol
			for _, s := range a {
				if s < 0 {
					symbols = append(symbols, rules[-1-s])
				} else {
					symbols = append(symbols, lexemes[s])
				}
			}
			all = append(all, symbols)
		}
		return all
	}
	for i := range y.rules {
		if y.lazy[i] {
			rules[i] = b.Lazy(fmt.Sprint("R", i), func() [][]grammar.Symbol { return body(i) })
		} else {
			rules[i] = b.Rule(fmt.Sprint("R", i))
		}
	}
	for i := range y.rules {
		if !y.lazy[i] {
			b.Define(rules[i], body(i)...)
		}
	}
	return b.Grammar(rules[0])
}

// language returns all texts of y up to a length, found by exhaustive search.
func (y toy) language(all []string, length int) language {
	lexemes := make([]language, len(y.lexemes))
	for i, name := range y.lexemes {
		lexemes[i] = newLanguage()
		if strings.HasPrefix(name, "%") {
			for _, text := range allTexts("ab", 2)[1:] {
				if name == "%" || text != "ab" {
					lexemes[i].add(text + "a" + text)
				}
			}
			continue
		}
		if name == "&[ab]{1,3}" {
			for _, text := range allTexts("ab", 3)[1:] {
				lexemes[i].add(text + text)
			}
			continue
		}
		s := rx.NewSpace(10_000)
		e := toyLexemes[name](s)
		for _, text := range all {
			d := e
			for j := range len(text) {
				d = s.Derive(d, text[j])
			}
			if s.Nullable(d) {
				lexemes[i].texts[text] = true
			}
			if !s.IsEmpty(d) {
				lexemes[i].prefixes[text] = true
			}
		}
	}
	rules := make([]language, len(y.rules))
	for i := range rules {
		rules[i] = newLanguage()
	}
	of := func(s int) language {
		if s < 0 {
			return rules[-1-s]
		}
		return lexemes[s]
	}
	for changed := true; changed; {
		changed = false
		for i, alternatives := range y.rules {
			for _, a := range alternatives {
				texts := map[string]bool{"": true}
				for _, s := range a {
					after := map[string]bool{}
					for text := range texts {
						for prefix := range of(s).prefixes {
							if p := text + prefix; len(p) <= length && !rules[i].prefixes[p] {
								rules[i].prefixes[p] = true
								changed = true
							}
						}
						for more := range of(s).texts {
							if len(text)+len(more) <= length {
								after[text+more] = true
							}
						}
					}
					texts = after
				}
				for text := range texts {
					if !rules[i].texts[text] {
						rules[i].texts[text] = true
						rules[i].prefixes[text] = true
						changed = true
					}
				}
			}
		}
	}
	return rules[0]
}

// allTexts returns every string over the alphabet up to that length.
func allTexts(alphabet string, length int) []string {
	all := []string{""}
	for from := 0; length > 0; length-- {
		end := len(all)
		for _, text := range all[from:end] {
			for i := range len(alphabet) {
				all = append(all, text+alphabet[i:i+1])
			}
		}
		from = end
	}
	return all
}
