package grammar_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// jsons builds grammars of JSON.
type jsons struct {
	b                          *grammar.Builder
	s                          *rx.Space
	space, character           rx.Expr
	open, closes, comma, colon grammar.Symbol
}

func newJSON(b *grammar.Builder) *jsons {
	s := b.Space()
	j := &jsons{b: b, s: s, space: s.Repeat(s.Bytes(rx.BytesOf(' ', '\n', '\t', '\r')), 0, 20)}
	hex := s.Bytes(rx.ByteRange('0', '9').Or(rx.ByteRange('a', 'f')).Or(rx.ByteRange('A', 'F')))
	j.character = s.Or(
		s.Runes(rx.RuneRange{Lo: ' ', Hi: '!'}, rx.RuneRange{Lo: '#', Hi: '['}, rx.RuneRange{Lo: ']', Hi: 0x10ffff}),
		s.Concat(s.Literal(`\`), s.Or(s.Bytes(rx.BytesOf('"', '\\', '/', 'b', 'f', 'n', 'r', 't')), s.Concat(s.Literal("u"), hex, hex, hex, hex))))
	j.open, j.closes, j.comma, j.colon = j.mark("{"), j.mark("}"), j.mark(","), j.mark(":")
	return j
}

// mark returns text with optional white space around it.
func (j *jsons) mark(text string) grammar.Symbol {
	return j.b.Lexeme(j.s.Concat(j.space, j.s.Literal(text), j.space))
}

// text returns a JSON string of lo to hi characters.
func (j *jsons) text(lo, hi int) grammar.Symbol {
	return j.b.Lexeme(j.s.Concat(j.s.Literal(`"`), j.s.Repeat(j.character, lo, hi), j.s.Literal(`"`)))
}

func (j *jsons) number() grammar.Symbol {
	s := j.s
	digit := s.Bytes(rx.ByteRange('0', '9'))
	integer := s.Or(s.Literal("0"), s.Concat(s.Bytes(rx.ByteRange('1', '9')), s.Repeat(digit, 0, -1)))
	fraction := s.Concat(s.Literal("."), s.Repeat(digit, 1, -1))
	exponent := s.Concat(s.Bytes(rx.BytesOf('e', 'E')), s.Repeat(s.Bytes(rx.BytesOf('+', '-')), 0, 1), s.Repeat(digit, 1, -1))
	opt := func(e rx.Expr) rx.Expr { return s.Repeat(e, 0, 1) }
	return j.b.Lexeme(s.Concat(opt(s.Literal("-")), integer, opt(fraction), opt(exponent)))
}

func (j *jsons) list(of grammar.Symbol) grammar.Symbol {
	items, list := j.b.Rule("items"), j.b.Rule("list")
	j.b.Define(items, []grammar.Symbol{of}, []grammar.Symbol{items, j.comma, of})
	open, closes := j.mark("["), j.mark("]")
	j.b.Define(list, []grammar.Symbol{open, closes}, []grammar.Symbol{open, items, closes})
	return list
}

// object returns an object with these members in order. A name that ends in ? is optional.
func (j *jsons) object(names []string, values ...grammar.Symbol) grammar.Symbol {
	// after[i] is the members from i on: [0] if no member came before, [1] if one did.
	after := make([][2]grammar.Symbol, len(names)+1)
	for i := range after {
		for k := range 2 {
			after[i][k] = j.b.Rule(fmt.Sprint("members", i))
		}
	}
	for k := range 2 {
		j.b.Define(after[len(names)][k], []grammar.Symbol{})
	}
	for i, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		member := []grammar.Symbol{j.b.Lexeme(j.s.Literal(`"` + name + `"`)), j.colon, values[i], after[i+1][1]}
		for k := range 2 {
			own := member
			if k == 1 {
				own = append([]grammar.Symbol{j.comma}, member...)
			}
			all := [][]grammar.Symbol{own}
			if optional {
				all = append(all, []grammar.Symbol{after[i+1][k]})
			}
			j.b.Define(after[i][k], all...)
		}
	}
	object := j.b.Rule("object")
	j.b.Define(object, []grammar.Symbol{j.open, after[0][0], j.closes})
	return object
}

// anything returns any JSON value.
func (j *jsons) anything() grammar.Symbol {
	value, members, object := j.b.Rule("value"), j.b.Rule("members"), j.b.Rule("object")
	member := []grammar.Symbol{j.text(0, -1), j.colon, value}
	j.b.Define(members, member, append([]grammar.Symbol{members, j.comma}, member...))
	j.b.Define(object, []grammar.Symbol{j.open, j.closes}, []grammar.Symbol{j.open, members, j.closes})
	j.b.Define(value, []grammar.Symbol{object}, []grammar.Symbol{j.list(value)}, []grammar.Symbol{j.text(0, -1)},
		[]grammar.Symbol{j.number()}, []grammar.Symbol{j.words("true", "false", "null")})
	return value
}

// other returns a string that is none of the names.
func (j *jsons) other(names ...string) grammar.Symbol {
	var all []rx.Expr
	for _, name := range names {
		all = append(all, j.s.Literal(`"`+name+`"`))
	}
	text := j.s.Concat(j.s.Literal(`"`), j.s.Repeat(j.character, 0, -1), j.s.Literal(`"`))
	return j.b.Lexeme(j.s.And(text, j.s.Not(j.s.Or(all...))))
}

// more returns an object with these members in any order, and others.
func (j *jsons) more(names []string, values ...grammar.Symbol) grammar.Symbol {
	member, members, object := j.b.Rule("member"), j.b.Rule("members"), j.b.Rule("object")
	all := [][]grammar.Symbol{{j.other(names...), j.colon, j.anything()}}
	for i, name := range names {
		all = append(all, []grammar.Symbol{j.b.Lexeme(j.s.Literal(`"` + name + `"`)), j.colon, values[i]})
	}
	j.b.Define(member, all...)
	j.b.Define(members, []grammar.Symbol{member}, []grammar.Symbol{members, j.comma, member})
	j.b.Define(object, []grammar.Symbol{j.open, j.closes}, []grammar.Symbol{j.open, members, j.closes})
	return object
}

func (j *jsons) words(words ...string) grammar.Symbol {
	var all []rx.Expr
	for _, w := range words {
		all = append(all, j.s.Literal(w))
	}
	return j.b.Lexeme(j.s.Or(all...))
}

func (j *jsons) person() grammar.Symbol {
	address := j.object([]string{"street", "city", "zip?"}, j.text(1, 80), j.text(1, 40), j.text(5, 10))
	return j.object([]string{"name", "age", "email?", "tags?", "address?", "status", "notes?"},
		j.text(1, 50), j.number(), j.text(3, 120), j.list(j.text(0, 20)), address, j.words(`"active"`, `"inactive"`, `"pending"`), j.text(0, -1))
}

const personText = `{"name": "José García-Márquez", "age": 42, "email": "jose@example.com", "tags": ["writer", "naïve", "日本語", "long text here"],
  "address": {"street": "12 Rue de l'Église, appartement 5", "city": "Aix-en-Provence", "zip": "13100"},
  "status": "active", "notes": "He said \"hello\" and left.\nThen he came back, \u00e9t\u00e9, with 3.14 apples {and} [pears]. The quick brown fox jumps over the lazy dog."}`

const anyText = `{"users":[{"id":1,"name":"Ann","scores":[1.5,2,3e10,-4],"ok":true,"nested":{"a":{"b":{"c":[]}}}},
 {"id":22,"name":"Bob \"the builder\"","scores":[],"ok":false,"note":null}], "total": 1234567890, "text": "Some longer text, which goes on: the body of a message; 100% of it."}`

// samples are grammars, each with a text of its language.
var samples = []struct {
	name  string
	start func(j *jsons) grammar.Symbol
	text  string
}{
	{"person", (*jsons).person, personText},
	{"any", (*jsons).anything, anyText},
	{"more", func(j *jsons) grammar.Symbol {
		return j.more([]string{"name", "age", "email", "addresses", "status", "nickname"}, j.text(1, 50), j.number(), j.text(3, 120), j.list(j.text(0, 60)), j.text(0, 3), j.text(0, 30))
	}, `{"name": "Ann", "nationality": "Finnish", "emails": ["a@b.c"], "email": "ann@example.com", "ages": {"then": 12, "now": 34}, "addresses": ["12 Main Street, Springfield"], "state": null, "unrelated": "text"}`},
	{"people", func(j *jsons) grammar.Symbol { return j.list(j.person()) }, "[" + personText + ",\n" + personText + "]"},
}

// TestMaskTimes logs the processor time that masks take. It has no limit to fail.
func TestMaskTimes(t *testing.T) {
	m := realVocabulary(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := cpu()
	v := m.vocabulary()
	t.Logf("vocabulary of %d: %v", len(m.pieces), cpu()-begin)
	for round := range rounds() {
		var times, first []time.Duration
		for _, sample := range samples {
			begin := cpu()
			b := grammar.NewBuilder(grammar.Limits{})
			g, err := b.Grammar(sample.start(newJSON(b)))
			if err != nil {
				t.Fatal(err)
			}
			words := make([]uint32, v.Words())
			s := g.Start()
			ids := m.tokens(sample.text)
			for n, id := range ids {
				if n > 0 {
					begin = cpu()
				}
				if err := s.Mask(v, words); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					first = append(first, cpu()-begin)
				} else {
					times = append(times, cpu()-begin)
				}
				if words[id/32]>>(id%32)&1 == 0 {
					t.Fatalf("%s: token %q is masked after %q", sample.name, m.pieces[id], sample.text)
				}
				s, _ = s.Token(v, id)
			}
			if !s.Ends() {
				t.Fatalf("%s is not at its end", sample.name)
			}
		}
		t.Logf("round %d: first %v; then %s", round, first, quantiles(times))
	}
}

func quantiles(times []time.Duration) string {
	slices.Sort(times)
	var sum time.Duration
	for _, d := range times {
		sum += d
	}
	n := len(times)
	return fmt.Sprintf("%d masks, mean %v, median %v, 90%% %v, 99%% %v, most %v", n, sum/time.Duration(n), times[n/2], times[n*9/10], times[n*99/100], times[n-1])
}

func BenchmarkVocabulary(b *testing.B) {
	m := realVocabulary(b)
	for b.Loop() {
		m.vocabulary()
	}
}

// rounds returns how often TestMaskTimes repeats its samples.
func rounds() int {
	n, err := strconv.Atoi(os.Getenv("REALIZAR_ROUNDS"))
	if err != nil {
		return 2
	}
	return n
}

// BenchmarkFirstMask builds grammars and computes their first masks.
func BenchmarkFirstMask(b *testing.B) {
	v := realVocabulary(b).vocabulary()
	words := make([]uint32, v.Words())
	for _, sample := range samples {
		b.Run(sample.name, func(b *testing.B) {
			for b.Loop() {
				builder := grammar.NewBuilder(grammar.Limits{})
				g, err := builder.Grammar(sample.start(newJSON(builder)))
				if err != nil {
					b.Fatal(err)
				}
				if err := g.Start().Mask(v, words); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGrammar(b *testing.B) {
	for _, sample := range samples {
		b.Run(sample.name, func(b *testing.B) {
			for b.Loop() {
				builder := grammar.NewBuilder(grammar.Limits{})
				if _, err := builder.Grammar(sample.start(newJSON(builder))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
