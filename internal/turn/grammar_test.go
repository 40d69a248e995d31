package turn

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

func compileSchema(b *grammar.Builder, schema json.RawMessage) (grammar.Symbol, error) {
	return jsonschema.Compile(b, schema, jsonschema.Options{Order: jsonschema.AnyOrder, Spelling: jsonschema.AnySpelling})
}

func testRequest(choice Choice) GrammarRequest {
	r := GrammarRequest{Choice: choice, Parallel: true, Schema: compileSchema}
	for _, t := range testTools {
		// Some templates want these keywords; the arguments of the samples do not.
		loose := strings.NewReplacer(`,"items":{"type":"string"}`, "", `,"additionalProperties":{"type":"string"}`, "")
		t.Parameters = json.RawMessage(loose.Replace(string(t.Parameters)))
		r.Tools = append(r.Tools, Tool{Tool: t})
	}
	return r
}

func compileForm(t testing.TB, f *Form, r GrammarRequest) *grammar.Grammar {
	b := grammar.NewBuilder(grammar.Limits{})
	start, err := f.Grammar(b, r)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grammar(start)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// check says how far a grammar lets a text through, and whether it may end there.
func accepts(g *grammar.Grammar, text string) (int, bool) {
	s := g.Start()
	for i := range len(text) {
		next, ok := s.Bytes([]byte{text[i]})
		if !ok {
			return i, false
		}
		s = next
	}
	return len(text), s.Ends()
}

func TestGrammarAcceptsTurns(t *testing.T) {
	for _, tm := range templates(t) {
		t.Run(tm.name, func(t *testing.T) {
			f := testForm(t, tm)
			if !f.HasCalls() {
				return
			}
			type key struct {
				tail   string
				choice Choice
			}
			built := map[key]*grammar.Grammar{}
			for _, s := range samples(f) {
				turn, ok := turnOf(tm, f, s.message)
				if !ok {
					continue
				}
				text := join(turn)
				if strings.Contains(text, "{\n") {
					continue // indented arguments are not what compileSchema makes
				}
				want, ok := expected(t, f, s.message, text)
				if !ok || s.raw && f.Calls.Syntax == SyntaxBraces {
					continue
				}
				choices := []Choice{ChoiceAuto}
				if len(want.Calls) > 0 && want.Content == "" {
					choices = append(choices, ChoiceRequired)
				}
				tails := map[string]bool{tailFor(f, want, text): true}
				for _, tail := range []string{f.Reasoning.Default, f.Reasoning.On, f.Reasoning.Off} {
					tails[tail] = tails[tail] || strings.HasPrefix(text, tail)
				}
				for i := range len(choices) * len(tails) {
					choice := choices[i%len(choices)]
					tail := slices.Sorted(maps.Keys(tails))[i/len(choices)]
					text, cut := strings.CutPrefix(text, tail)
					if !tails[tail] || tail != "" && !cut && tail != tailFor(f, want, text) {
						continue
					}
					k := key{tail, choice}
					g := built[k]
					if g == nil {
						r := testRequest(choice)
						r.Tail = k.tail
						g = compileForm(t, f, r)
						built[k] = g
					}
					if n, ok := accepts(g, text); !ok {
						t.Errorf("%s, choice %d: %q stops before %q", s.name, choice, text[:n], text[n:])
					}
				}
			}
		})
	}
}

func TestGrammarRefuses(t *testing.T) {
	for _, tm := range templatesOf(t, "testdata/templates/*.jinja") {
		t.Run(tm.name, func(t *testing.T) {
			f := testForm(t, tm)
			sample := samples(f)[3]
			turn, ok := turnOf(tm, f, sample.message)
			if !ok {
				t.Fatal("the template renders no call")
			}
			text := join(turn)
			for name, change := range map[string]func(string) string{
				"another name": func(s string) string { return strings.Replace(s, "get_weather", "get_wether", 1) },
				"cut off":      func(s string) string { return s[:strings.Index(s, "days")] },
				"another type": func(s string) string { return strings.Replace(s, "3", "x", 1) },
				"another key":  func(s string) string { return strings.Replace(s, "days", "dayz", 1) },
				"plain text":   func(string) string { return "Hello." },
			} {
				if name == "another key" && (f.Calls.Syntax == SyntaxJSON || f.Calls.Syntax == SyntaxHarmony) || f.Calls.Syntax == SyntaxString {
					continue // the schema allows other properties
				}
				if n, ok := accepts(compileForm(t, f, testRequest(ChoiceRequired)), change(text)); ok {
					t.Errorf("%s: accepted: %q (%d)", name, change(text), n)
				}
			}
		})
	}
}
