package turn

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

func compileSchema(b *grammar.Builder, schema json.RawMessage) (grammar.Symbol, error) {
	return jsonschema.Compile(b, schema, jsonschema.Options{Order: jsonschema.AnyOrder, Spelling: jsonschema.AnySpelling})
}

func testRequest(choice Choice) GrammarRequest {
	r := GrammarRequest{Choice: choice, Parallel: true, Schema: compileSchema}
	for _, t := range testTools {
		// Some templates require these keywords; the samples' arguments do not match them.
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

// accepts returns how many bytes of a text a grammar accepts, and whether the text may end there.
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
					continue // compileSchema does not allow indented arguments
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
					tails[tail] = tails[tail] || tail != "" && strings.HasPrefix(text, tail)
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

// TestGrammarAgainstParser writes random turns that the grammar allows, and parses them.
func TestGrammarAgainstParser(t *testing.T) {
	for _, tm := range templatesOf(t, "testdata/templates/*.jinja") {
		t.Run(tm.name, func(t *testing.T) {
			f := testForm(t, tm)
			if f.Calls.Syntax == SyntaxString {
				t.Skip("what stands in a string is not enforced")
			}
			request := testRequest(ChoiceRequired)
			// Required arguments of few types give texts that end.
			request.Tools[0].Parameters = json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"},` +
				`"days":{"type":"integer"},"list":{"type":"array","items":{"type":"boolean"}},"kind":{"enum":["a b","c"]}},` +
				`"required":["days","kind"],"additionalProperties":false}`)
			request.Tools[1].Parameters = json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}},"additionalProperties":false}`)
			tools := []chat.Tool{request.Tools[0].Tool, request.Tools[1].Tool}
			g := compileForm(t, f, request)
			r := rand.New(rand.NewPCG(3, 4))
			ended := 0
			for tries := 0; tries < 100 && ended < 6; tries++ {
				text, ok := write(g, r)
				if !ok {
					continue
				}
				ended++
				events := feed(f, ParserOptions{Tools: tools, Calls: true}, text)
				calls := 0
				for _, e := range events {
					switch e.Kind {
					case CallEnd:
						calls++
					case CallBroken, Text:
						t.Fatalf("%q was read as %+v", text, events)
					}
				}
				if calls == 0 {
					t.Fatalf("%q has no call: %+v", text, events)
				}
				checkEvents(t, events)
			}
			if ended == 0 {
				t.Error("no text came to its end")
			}
		})
	}
}

// write returns a random text of the grammar. It returns false if the text does not end.
func write(g *grammar.Grammar, r *rand.Rand) (string, bool) {
	printable := ""
	for b := byte(' '); b < 0x7f; b++ {
		printable += string(rune(b))
	}
	const alphabet = "aab<>/\"'\\ \n{}[](),:=1-_tf|\xc3\xa9"
	s := g.Start()
	var text []byte
	for len(text) < 1000 {
		if s.Ends() && r.IntN(3) == 0 {
			return string(text), true
		}
		if forced := s.Forced(100); len(forced) > 0 {
			text = append(text, forced...)
			s, _ = s.Bytes(forced)
			continue
		}
		var next []byte
		states := map[byte]grammar.State{}
		for _, b := range []byte("\n" + printable + "\xc3\xa9\xef\xbd\x9c\xe2\x96\x81") {
			if n, ok := s.Bytes([]byte{b}); ok {
				states[b] = n
				weight := 1
				if strings.IndexByte(alphabet, b) >= 0 {
					weight = 4
				}
				if strings.IndexByte(`<"]}|`, b) >= 0 {
					weight = 40
				}
				for range weight {
					next = append(next, b)
				}
			}
		}
		if len(next) == 0 {
			return string(text), s.Ends()
		}
		b := next[r.IntN(len(next))]
		text = append(text, b)
		s = states[b]
	}
	return "", false
}

func TestGrammarRequests(t *testing.T) {
	f := byName(t, "hermes")
	call := func(name string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {\"location\": \"x\"}}\n</tool_call>"
	}
	weather := call("get_weather")
	content := func(b *grammar.Builder) grammar.Symbol { return b.Lexeme(b.Space().Literal("yes")) }
	for _, c := range []struct {
		name    string
		request func(*grammar.Builder, *GrammarRequest)
		yes, no []string
	}{
		{"auto", func(_ *grammar.Builder, r *GrammarRequest) { r.Choice = ChoiceAuto },
			[]string{"Hello <b>", weather, "Text\n" + weather, weather + "\n" + weather, "<think>\nhm <tool_call>\n</think>\n\nHi", ""},
			[]string{"<tool_call>x", call("other"), "a <tool_call> b"}},
		{"none", func(_ *grammar.Builder, r *GrammarRequest) { r.Choice = ChoiceNone }, []string{"Hello"}, []string{weather}},
		{"required", func(_ *grammar.Builder, r *GrammarRequest) { r.Choice = ChoiceRequired },
			[]string{weather, "\n" + weather, "<think>\nhm\n</think>\n\n" + weather}, []string{"Hello", "", "Text\n" + weather}},
		{"by name", func(_ *grammar.Builder, r *GrammarRequest) { r.Choice, r.Name = ChoiceRequired, "now" },
			[]string{call("now")}, []string{weather}},
		{"one", func(_ *grammar.Builder, r *GrammarRequest) { r.Choice, r.Parallel = ChoiceRequired, false },
			[]string{weather}, []string{weather + "\n" + weather}},
		{"open thought", func(_ *grammar.Builder, r *GrammarRequest) { r.Choice, r.Tail = ChoiceRequired, "<think>\n" },
			[]string{"hm\n</think>\n\n" + weather, "</think>" + weather}, []string{weather}},
		{"no thought", func(_ *grammar.Builder, r *GrammarRequest) {
			r.Choice, r.Tail = ChoiceRequired, "<think>\n\n</think>\n\n"
		},
			[]string{weather}, []string{"<think>\nhm\n</think>\n\n" + weather}},
		{"content", func(b *grammar.Builder, r *GrammarRequest) {
			r.Choice, r.Tools, r.Content = ChoiceAuto, nil, content(b)
		},
			[]string{"yes", "<think>\nno\n</think>\n\nyes"}, []string{"no", weather}},
		{"content or calls", func(b *grammar.Builder, r *GrammarRequest) { r.Choice, r.Content = ChoiceAuto, content(b) },
			[]string{"yes", weather}, []string{"no", "yes" + weather}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := grammar.NewBuilder(grammar.Limits{})
			r := testRequest(ChoiceAuto)
			c.request(b, &r)
			start, err := f.Grammar(b, r)
			if err != nil {
				t.Fatal(err)
			}
			g, err := b.Grammar(start)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.yes {
				if n, ok := accepts(g, text); !ok {
					t.Errorf("%q stops before %q", text[:n], text[n:])
				}
			}
			for _, text := range c.no {
				if _, ok := accepts(g, text); ok {
					t.Errorf("%q is accepted", text)
				}
			}
		})
	}
	if _, err := f.Grammar(grammar.NewBuilder(grammar.Limits{}), GrammarRequest{Choice: ChoiceRequired, Name: "f"}); !errors.Is(err, ErrGrammar) {
		t.Errorf("a tool that is not there: %v", err)
	}
}
