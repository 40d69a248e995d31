package tags

import (
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
)

// options returns Options for which a schema {"const": x} matches the text x, and a grammar matches
// its own text.
func options(b *grammar.Builder) Options {
	return Options{
		Schema: func(schema []byte, anyOrder bool) (grammar.Symbol, error) {
			s, ok := strings.CutPrefix(string(schema), `{"const":`)
			if !ok {
				return grammar.Symbol{}, errors.New("only const works here")
			}
			return b.Lexeme(b.Space().Literal(strings.TrimSpace(strings.TrimSuffix(s, "}")))), nil
		},
		Grammar: func(text string) (grammar.Symbol, error) { return b.Lexeme(b.Space().Literal(text)), nil },
	}
}

func compile(text string) (*grammar.Grammar, error) {
	b := grammar.NewBuilder(grammar.Limits{})
	symbol, err := Compile(b, []byte(text), options(b))
	if err != nil {
		return nil, err
	}
	return b.Grammar(symbol)
}

func TestFormats(t *testing.T) {
	const tag = `{"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": {"const":1}}, "end": "</f>"}`
	for _, test := range []struct {
		name, format string
		yes, not     []string
	}{
		{"const_string", `{"type": "const_string", "value": "a\n"}`, []string{"a\n"}, []string{"a"}},
		{"json_schema", `{"type": "json_schema", "json_schema": {"const":12}, "style": "json", "any_order": true}`, []string{"12"}, []string{"1"}},
		{"regex", `{"type": "regex", "pattern": "[a-z]{2}"}`, []string{"ab"}, []string{"abc"}},
		{"grammar", `{"type": "grammar", "grammar": "x"}`, []string{"x"}, []string{""}},
		{"any_text", `{"type": "any_text", "excludes": ["no"], "max_chars": 3}`, []string{"", "éoé", "nnn"}, []string{"no", "anox", "aaaa"}},
		{"sequence", `{"type": "sequence", "elements": [{"type": "const_string", "value": "a"}, {"type": "or", "elements": [{"type": "const_string", "value": "b"}, {"type": "const_string", "value": "c"}]}, {"type": "const_string", "value": "d"}]}`, []string{"abd", "acd"}, []string{"ad", "abcd"}},
		{"optional", `{"type": "optional", "content": {"type": "const_string", "value": "ab"}}`, []string{"", "ab"}, []string{"abab"}},
		{"plus", `{"type": "plus", "content": {"type": "const_string", "value": "ab"}}`, []string{"ab", "abab"}, []string{""}},
		{"star", `{"type": "star", "content": {"type": "const_string", "value": "ab"}}`, []string{"", "ab", "abab"}, []string{"a"}},
		{"repeat", `{"type": "repeat", "min": 1, "max": 2, "content": {"type": "const_string", "value": "ab"}}`, []string{"ab", "abab"}, []string{"", "ababab"}},
		{"repeat without a bound", `{"type": "repeat", "min": 2, "max": -1, "content": {"type": "const_string", "value": "a"}}`, []string{"aa", "aaaa"}, []string{"a"}},
		{"tag", tag, []string{"<f>1</f>"}, []string{"<f>1", "x<f>1</f>"}},
		{"tag of any text", `{"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"}`, []string{"<think></think>", "<think>a</think</think>"}, []string{"<think>a</think>b</think>", "<think>"}},
		{"ends that overlap", `{"type": "tag", "begin": "b", "content": {"type": "any_text"}, "end": ["aa", "c"]}`, []string{"baa", "bxaa", "bac"}, []string{"baaa", "bcc"}},
		{"an empty end", `{"type": "tag", "begin": "b", "content": {"type": "const_string", "value": "x"}, "end": ["", "c"]}`, []string{"bx", "bxc"}, []string{"b"}},
		{"a sequence in a tag", `{"type": "tag", "begin": "<", "content": {"type": "sequence", "elements": [{"type": "any_text"}, {"type": "const_string", "value": "="}, {"type": "any_text"}]}, "end": ">"}`, []string{"<=>", "<a=b>"}, []string{"<ab>", "<a>=>", "<a=b>>"}},
		{"triggered_tags", `{"type": "triggered_tags", "triggers": ["<f"], "tags": [` + tag + `]}`, []string{"", "text <", "a<f>1</f>b<f>1</f>"}, []string{"<f", "<f>2</f>", "<f>1"}},
		{"at_least_one", `{"type": "triggered_tags", "triggers": ["<f"], "tags": [` + tag + `], "at_least_one": true}`, []string{"<f>1</f>", "<f>1</f>b<f>1</f>c"}, []string{"", "a<f>1</f>"}},
		{"stop_after_first", `{"type": "triggered_tags", "triggers": ["<f"], "tags": [` + tag + `], "stop_after_first": true}`, []string{"", "a", "a<f>1</f>"}, []string{"<f>1</f>b", "<f>1</f><f>1</f>"}},
		{"both", `{"type": "triggered_tags", "triggers": ["<f"], "tags": [` + tag + `], "at_least_one": true, "stop_after_first": true}`, []string{"<f>1</f>"}, []string{"", "a<f>1</f>", "<f>1</f>b"}},
		{"excludes", `{"type": "triggered_tags", "triggers": ["<f"], "tags": [` + tag + `], "excludes": ["</r>"]}`, []string{"a<f>1</f>b"}, []string{"</r>", "<f>1</f></r>"}},
		{"triggered_tags in a tag", `{"type": "tag", "begin": "<r>", "content": {"type": "triggered_tags", "triggers": ["<f"], "tags": [` + tag + `]}, "end": "</r>"}`, []string{"<r></r>", "<r>a<f>1</f>b</r>"}, []string{"<r>a<f>1</f>b", "<r>a</r>b</r>", "<r>a</r><f>1</f></r>"}},
		{"tags_with_separator", `{"type": "tags_with_separator", "tags": [` + tag + `], "separator": ","}`, []string{"", "<f>1</f>", "<f>1</f>,<f>1</f>"}, []string{"<f>1</f>,", "<f>1</f><f>1</f>"}},
		{"one with a separator", `{"type": "tags_with_separator", "tags": [` + tag + `], "separator": ",", "at_least_one": true, "stop_after_first": true}`, []string{"<f>1</f>"}, []string{"", "<f>1</f>,<f>1</f>"}},
		{"dispatch", `{"type": "dispatch", "rules": [["<a>", {"type": "const_string", "value": "1"}], ["<b>", {"type": "const_string", "value": "2"}]], "excludes": ["!"]}`, []string{"", "x<a>1y<b>2z"}, []string{"<a>2", "!", "<a>"}},
		{"dispatch once", `{"type": "dispatch", "rules": [["<a>", {"type": "const_string", "value": "1"}]], "loop": false}`, []string{"x", "x<a>1"}, []string{"<a>1x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := compile(`{"type": "structural_tag", "format": ` + test.format + `}`)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range test.yes {
				if !fits(g, text) {
					t.Errorf("%q does not fit", text)
				}
			}
			for _, text := range test.not {
				if fits(g, text) {
					t.Errorf("%q fits", text)
				}
			}
		})
	}
}

func TestOlderForm(t *testing.T) {
	g, err := compile(`{"type": "structural_tag", "structures": [
		{"begin": "<function=f>", "schema": {"const":1}, "end": "</function>"},
		{"begin": "<function=g>", "schema": {"const":2}, "end": "</function>"}], "triggers": ["<function="]}`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"": true, "a<function=g>2</function>b": true, "<function=f>2</function>": false, "<function=": false} {
		if fits(g, text) != want {
			t.Errorf("%q: fits = %v", text, !want)
		}
	}
}

func TestTokenFormats(t *testing.T) {
	v := grammar.NewVocabulary([][]byte{[]byte("a"), []byte("b"), nil, nil, nil}, map[string]int32{"<x>": 2, "<y>": 3, "<end>": 4}, []int32{4})
	for _, test := range []struct {
		format string
		read   []int32
		want   uint32 // mask after reading these tokens
	}{
		{`{"type": "token", "token": "<x>"}`, nil, 0b00100},
		{`{"type": "token", "token": 1}`, nil, 0b00010},
		{`{"type": "exclude_token", "exclude_tokens": ["<x>", 0]}`, nil, 0b01010},
		{`{"type": "any_tokens", "exclude_tokens": ["<x>"]}`, []int32{0, 3}, 0b11011},
		{`{"type": "any_tokens", "max_tokens": 2}`, []int32{0, 3}, 0b10000},
		{`{"type": "tag", "begin": {"type": "token", "token": "<x>"}, "content": {"type": "any_tokens"}, "end": {"type": "token", "token": "<y>"}}`, []int32{2, 0}, 0b01111},
		{`{"type": "tag", "begin": {"type": "token", "token": "<x>"}, "content": {"type": "any_tokens"}, "end": {"type": "token", "token": "<y>"}}`, []int32{2, 0, 3}, 0b10000},
		{`{"type": "tag", "begin": {"type": "token", "token": "<x>"}, "content": {"type": "exclude_token"}, "end": {"type": "token", "token": "<y>"}}`, []int32{2}, 0b00111},
		{`{"type": "token_triggered_tags", "trigger_tokens": ["<x>"], "exclude_tokens": [1], "tags": [{"type": "tag", "begin": {"type": "token", "token": "<x>"}, "content": {"type": "const_string", "value": "b"}, "end": {"type": "token", "token": "<y>"}}]}`, []int32{0}, 0b11101},
		{`{"type": "token_triggered_tags", "trigger_tokens": ["<x>"], "tags": [{"type": "tag", "begin": {"type": "token", "token": "<x>"}, "content": {"type": "const_string", "value": "b"}, "end": {"type": "token", "token": "<y>"}}], "at_least_one": true, "stop_after_first": true}`, []int32{2, 1, 3}, 0b10000},
		{`{"type": "token_triggered_tags", "trigger_tokens": ["<x>"], "tags": [{"type": "tag", "begin": {"type": "token", "token": "<x>"}, "content": {"type": "const_string", "value": "b"}, "end": {"type": "token", "token": "<y>"}}], "at_least_one": true}`, nil, 0b00100},
		{`{"type": "token_dispatch", "rules": [["<x>", {"type": "const_string", "value": "b"}], [3, {"type": "const_string", "value": "a"}]], "loop": false}`, []int32{0, 3, 0}, 0b10000},
	} {
		g, err := compile(`{"type": "structural_tag", "format": ` + test.format + `}`)
		if err != nil {
			t.Fatal(test.format, err)
		}
		s := g.Start()
		for _, id := range test.read {
			var ok bool
			if s, ok = s.Token(v, id); !ok {
				t.Fatalf("%s: token %d of %v does not fit", test.format, id, test.read)
			}
		}
		words := make([]uint32, 1)
		if err := s.Mask(v, words); err != nil {
			t.Fatal(err)
		}
		if words[0] != test.want {
			t.Errorf("%s after %v: mask %05b, want %05b", test.format, test.read, words[0], test.want)
		}
	}
}

func TestJSONErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"type": "x"}`, `the whole: the type is "x"; it must be "structural_tag"`},
		{`{"type": "structural_tag"}`, "the whole: it needs a format, or structures and triggers"},
		{`{"type": "structural_tag", "foo": 1}`, `the whole: json: unknown field "foo"`},
		{`{"type": "structural_tag", "format": {}} x`, "the whole: something follows the JSON"},
		{`{"type": "structural_tag", "format": {}, "triggers": ["a"]}`, "the whole: format cannot stand beside structures and triggers"},
		{`{"type": "structural_tag", "structures": [{"begin": "a", "schema": {}, "end": ""}], "triggers": ["a"]}`, "structures[0]: only const works here"},
		{`{"type": "structural_tag", "structures": [], "triggers": ["a"]}`, "structures: structural tags: there are no tags"},
		{`{"type": "structural_tag", "format": 1}`, "format: a format is an object with a type"},
		{`{"type": "structural_tag", "format": {}}`, "format: a format needs a type"},
		{`{"type": "structural_tag", "format": {"type": "foo"}}`, `format: the type "foo" is not known`},
		{`{"type": "structural_tag", "format": {"type": "any_text", "max_tokens": 3}}`, "format: max_tokens of any_text is not supported; use max_chars"},
		{`{"type": "structural_tag", "format": {"type": "any_text", "foo": 3}}`, `format: json: unknown field "foo"`},
		{`{"type": "structural_tag", "format": {"type": "const_string"}}`, "format: const_string needs a value"},
		{`{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}}`, `format: the style "qwen_xml" is not supported; "json" is`},
		{`{"type": "structural_tag", "format": {"type": "json_schema"}}`, "format: the schema is missing"},
		{`{"type": "structural_tag", "format": {"type": "regex", "pattern": "("}}`, `format: pattern "(": at byte 0: this ( has no ); a ( of the text is written \(`},
		{`{"type": "structural_tag", "format": {"type": "sequence", "elements": [{"type": "star"}]}}`, "format.elements[0].content: a format is an object with a type"},
		{`{"type": "structural_tag", "format": {"type": "repeat", "content": {}}}`, "format: repeat needs min and max"},
		{`{"type": "structural_tag", "format": {"type": "repeat", "min": 3, "max": 2, "content": {}}}`, "format: min 3 and max 2 are no counts; max is -1 for no bound, and at most 16777216"},
		{`{"type": "structural_tag", "format": {"type": "tag", "begin": "a"}}`, "format: a tag needs begin, content and end"},
		{`{"type": "structural_tag", "format": {"type": "tag", "begin": "a", "content": {"type": "any_text"}, "end": {"type": "x"}}}`, `format.end: it is a text, or an object of the type "token"`},
		{`{"type": "structural_tag", "format": {"type": "tag", "begin": "a", "content": {"type": "any_text", "excludes": ["x"]}, "end": "xy"}}`, `format.content: the end ["xy"] holds an excluded text`},
		{`{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<a"], "tags": [{"begin": "<b", "content": {"type": "any_text"}, "end": ""}]}}`, `format: structural tags: the begin "<b" begins with none of the triggers ["<a"]`},
		{`{"type": "structural_tag", "format": {"type": "token", "token": -1}}`, "format: a token is a number or the text of a special token"},
	} {
		_, err := compile(test.text)
		var bad *Error
		if !errors.As(err, &bad) || err.Error() != "structural_tag: "+test.want {
			t.Errorf("%s\n got %v\nwant structural_tag: %s", test.text, err, test.want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<f"], "tags": [{"type": "tag", "begin": "<f>", "content": {"type": "any_text"}, "end": "</f>"}]}}`), "a<f>b</f>c")
	f.Add([]byte(`{"type": "structural_tag", "structures": [{"begin": "<a>", "schema": {"const":1}, "end": "</a>"}], "triggers": ["<a"]}`), "<a>1</a>")
	f.Add([]byte(`{"type": "structural_tag", "format": {"type": "or", "elements": [{"type": "regex", "pattern": "a+"}, {"type": "any_tokens", "exclude_tokens": [3, "<x>"]}]}}`), "aa")
	f.Fuzz(func(t *testing.T, text []byte, input string) {
		b := grammar.NewBuilder(grammar.Limits{Rules: 10000, Expressions: 10000, Derivatives: 10000, Items: 2000, Sets: 10000, Threads: 32})
		symbol, err := Compile(b, text, options(b))
		if err != nil {
			return
		}
		g, err := b.Grammar(symbol)
		if err != nil {
			return
		}
		s := g.Start()
		for i := range min(len(input), 64) {
			var ok bool
			if s, ok = s.Bytes([]byte(input[i : i+1])); !ok {
				break
			}
		}
		s.Ends()
	})
}
