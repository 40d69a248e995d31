package turn

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/grammar"
)

// TestContinues checks that a turn that the prompt has begun is parsed from there on, with the
// calls after it, and that its grammar is that of the rest.
func TestContinues(t *testing.T) {
	call := chat.ToolCall{ID: "abcdefghi", Name: "get_weather", Arguments: []byte(`{"location":"Paris","days":3}`)}
	const begun, rest = "I look", " {it} up."
	for _, tm := range templatesOf(t, "testdata/templates/*.jinja") {
		t.Run(tm.name, func(t *testing.T) {
			f := testForm(t, tm)
			for name, m := range map[string]chat.Message{
				"text": assistant(begun+rest, ""), "thought": assistant(begun+rest, "Let me see."), "call": assistant(begun+rest, "", call),
			} {
				turn, ok := turnOf(tm, f, m)
				_, text, found := strings.Cut(join(turn), begun)
				if !ok || !found || f.Calls.Syntax == SyntaxHarmony && name == "call" {
					continue // the call is a message of its own
				}
				got := f.Parse(text, ParserOptions{Tools: testTools, Calls: true, Continues: true})
				calls := 0
				if name == "call" && strings.Contains(text, call.Name) && !newPlan(f, nil).bare {
					calls = 1
				}
				if strings.TrimRight(got.Content, spaces) != rest && calls == len(m.ToolCalls) || got.Reasoning != "" || len(got.Calls) != calls {
					t.Errorf("%s: %q is %+v", name, text, got)
				}
				if calls != len(m.ToolCalls) {
					continue
				}
				r := testRequest(ChoiceAuto)
				r.Continues = true
				if n, ok := accepts(compileForm(t, f, r), text); !ok {
					t.Errorf("%s: %q stops before %q", name, text[:n], text[n:])
				}
			}
		})
	}
}

// TestContinuesContent checks that the constraint on a turn's text applies to the rest of it.
func TestContinuesContent(t *testing.T) {
	for _, name := range []string{"hermes", "harmony", "command-r", "llama-3"} {
		f := byName(t, name)
		r := testRequest(ChoiceAuto)
		r.Continues = true
		b := grammar.NewBuilder(grammar.Limits{})
		r.Content = b.Lexeme(b.Space().Literal("{1}"))
		start, err := f.Grammar(b, r)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grammar(start)
		if err != nil {
			t.Fatal(err)
		}
		end := ""
		if word(f.Content.Begin) != "" {
			end = f.Content.End
		}
		if _, ok := accepts(g, "{1}"+end); !ok {
			t.Errorf("%s: the text is refused", name)
		}
		for _, text := range []string{"{2}", "<think>\n\n</think>\n\n{1}", "<|channel|>final<|message|>{1}"} {
			if n, ok := accepts(g, text); ok || n > 1 {
				t.Errorf("%s: %q of %q is accepted", name, text[:n], text)
			}
		}
	}
}
