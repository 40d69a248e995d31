package lark

import (
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
)

// compile compiles a grammar. %json matches the JSON itself, without surrounding quotes; false is
// an error.
func compile(text string) (*grammar.Grammar, error) {
	b := grammar.NewBuilder(grammar.Limits{})
	symbol, err := Compile(b, text, Options{JSON: func(schema []byte) (grammar.Symbol, error) {
		if string(schema) == "false" {
			return grammar.Symbol{}, errors.New("false is no schema here")
		}
		return b.Lexeme(b.Space().Literal(strings.Trim(string(schema), `"`))), nil
	}})
	if err != nil {
		return nil, err
	}
	return b.Grammar(symbol)
}

func fits(g *grammar.Grammar, text string) bool {
	s, ok := g.Start().Bytes([]byte(text))
	return ok && s.Ends()
}

func TestGrammars(t *testing.T) {
	for _, test := range []struct {
		name, grammar string
		yes, not      []string
	}{
		{"literals", `start: "a\n\"\\\x41\u00e9" "IF"i "a".."c"`, []string{"a\n\"\\AéiFb"}, []string{""}},
		{"case", `start: "straße"i`, []string{"STRAßE", "straẞe"}, []string{"strasse"}},
		{"alternatives over lines", "start: \"a\"\n  // a comment\n  | \"b\" -> other\n\n  | c\n# more\nc: (\n \"x\"\n \"y\"\n)", []string{"a", "b", "xy"}, []string{"ab"}},
		{"modifiers", "?start: _x\n!_x: \"a\"", []string{"a"}, nil},
		{"repetition", `start: "a"~2 "b"~1..3 "c"{2} "d"{,2} "e"{1,} ["f"] "g"?`, []string{"aabcce", "aabbbccddeefg"}, []string{"abcce", "aabbbbcce", "aabccddde"}},
		{"regex", `start: /a\/b/i /[0-9]+/ /./s`, []string{"A/b12\n"}, []string{"a/b1", "ab1x"}},
		{"terminals", "start: INT ID_1\nINT: \"-\"? UINT\nUINT: DIGIT+\nDIGIT: /[0-9]/\nID_1: \"x\"", []string{"-12x", "3x"}, []string{"x"}},
		{"and, not", "start: A\nA: /[a-z]+/ & ~(\"if\" | \"else\") | ~\"x\"+ & \"yy\" | \"if\" & \"if\" \"\"", []string{"a", "iff", "yy", "if"}, []string{"else", ""}},
		{"no double line feed", "start: A\nA: /[a-zA-Z \\n]*/ & ~/(?s:.*)\\n\\n(?s:.*)/", []string{"", "a\nb"}, []string{"a\n\nb"}},
		{"not is text", "start: A\nA: ~\"x\"", []string{"", "é"}, []string{"x", "\xff"}},
		{"ignore", "start: \"a\" B %json \"{}\" c\nB: \"b\" \"b\"\nc: \"x\"+\n%ignore /[ \\t]/\n%ignore COMMENT\nCOMMENT: \"#\"", []string{"abb{}x", "a bb\t # {} x x  "}, []string{" abb{}x", "ab b{}x"}},
		{"ignore once", "%llguidance {\"skip_repetition\": \"once\", \"allow_initial_skip\": true}\nstart: \"a\" \"b\"\n%ignore / {1,2}/", []string{"ab", "  a  b  "}, []string{"a   b", "   ab"}},
		{"import", "%import common.INT\n%import common (WORD, NUMBER)\n%import common.ESCAPED_STRING -> S\n%llguidance {}\nstart: INT WORD NUMBER S", []string{`12ab1.5e3"x\"y"`, `1a.5""`}, []string{`12ab1.5e3"x"y"`}},
		{"recursion", "start: e\ne: e \"+\" t | t\nt: \"(\" e \")\" | /[0-9]+/", []string{"1", "1+(2+33)"}, []string{"1+", "(1"}},
		{"substrings", "start: A\nA: \"<\" %regex {\"substring_chunks\": [\"abc\", \"de\", \"fg\"]} \">\"", []string{"<>", "<abc>", "<de>", "<abcde>", "<defg>", "<abcdefg>"}, []string{"<ab>", "<cde>", "<abcfg>"}},
		{"words", `start: %regex {"substring_words": "foo bar. baz"}`, []string{"foo bar", " bar.", ""}, []string{"oo"}},
		{"characters", `start: %regex {"substring_chars": "ab é"}`, []string{"b é"}, []string{"aé"}},
		{"suffix", "start: a \"!\"\na[suffix=\"<end>\"]: /.*/", []string{"<end>!", "foo<end>!"}, []string{"foo!", "foo<end>bar<end>!"}},
		{"lazy", "start: a b\na[capture=\"x\", lazy]: /.*<end>/\nb: /[a-z<>]*/", []string{"foo<end>", "foo<end>bar<end>"}, []string{"foo"}},
		{"lazy number", "start: a\na[lazy]: /[0-9]+/", []string{"1"}, []string{"12", ""}},
		{"calls of tools", `start: ( f_foo | f_bar )* f_end
f_end: TEXT
TEXT: /(.|\n)*/
f_foo_hd[lazy]: TEXT "<function"
f_foo: f_foo_hd "=foo>" %json "{}" "</function>"
f_bar_hd[lazy]: TEXT "<function"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"`,
			[]string{"", "text <functio", "a<function=foo>{}</function>b\n<function=bar>12</function>", "<f<function=bar>1</function><"},
			[]string{"a<function", "a<function=foo>", "a<function=foo>{}</function>b<function", "<function=baz>1</function>", "<function=bar></function>"}},
		{"special tokens", "start: <think> /[^<]*/ </think> \"!\"", []string{"<think>a</think>!"}, []string{"a!"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := compile(test.grammar)
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

func TestTokens(t *testing.T) {
	v := grammar.NewVocabulary([][]byte{[]byte("a"), []byte("b"), nil, nil, nil}, map[string]int32{"<x>": 2, "<y>": 3, "<end>": 4}, []int32{4})
	for text, fits := range map[string][]int32{
		`start: <x>`:            {2},
		`start: <[1]>`:          {1},
		`start: <[0-1,3]>`:      {0, 1, 3},
		`start: <[^1-2]>`:       {0, 3},
		`start: <[*]>`:          {0, 1, 2, 3},
		`start: <[1]> | "a"{2}`: {0, 1},
	} {
		g, err := compile(text)
		if err != nil {
			t.Fatal(text, err)
		}
		words := make([]uint32, 1)
		if err := g.Start().Mask(v, words); err != nil {
			t.Fatal(err)
		}
		var want uint32
		for _, id := range fits {
			want |= 1 << id
		}
		if words[0] != want {
			t.Errorf("%s: mask %05b, want %05b", text, words[0], want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct{ grammar, want string }{
		{"", "line 1, column 1: there is no rule start; name the rule for the whole text start"},
		{"start: a", "line 1, column 8: the rule a is not defined"},
		{"start: A", "line 1, column 8: the terminal A is not defined"},
		{"start: INT", "line 1, column 8: the terminal INT is not defined; add a line %import common.INT"},
		{"start: \"a\"\nstart: \"b\"", "line 2, column 1: start is defined twice; join its alternatives with |"},
		{"start \"a\"", "line 1, column 7: this is '\"' where : is due behind the name start"},
		{"start: \"a", `line 1, column 8: this string has no end "`},
		{"start: 'a'", `line 1, column 8: a string stands in double quotes, as in "text"`},
		{`start: "\q"`, `line 1, column 9: the escape \q is not known; a backslash of the text is written \\`},
		{"start: /a(/", `line 1, column 10: this ( has no ); a ( of the text is written \(`},
		{"start: /a", "line 1, column 8: this regular expression has no end /"},
		{"start: /a/l", "line 1, column 11: the flag l (letters of a locale) is not supported"},
		{"start: (\"a\"", "line 1, column 8: this ( has no )"},
		{"start: \"a\")", "line 1, column 11: this ')' does not belong here"},
		{"start: *", "line 1, column 8: nothing stands before this * to repeat"},
		{"start: \"z\"..\"a\"", "line 1, column 8: the range z-a goes backwards"},
		{"start: \"ab\"..\"c\"", `line 1, column 8: a range is written "a".."z", of one character on each side`},
		{"start: \"a\"{2,1}", "line 1, column 11: the minimum 2 is above the maximum 1"},
		{"start: \"a\" & \"b\"", "line 1, column 8: & and ~ work in terminals; give this an upper-case name of its own"},
		{"start: A\nA: B\nB: \"x\" A?", "line 3, column 8: the terminal A refers to itself; make it a rule with a lower-case name"},
		{"start: A\nA: b\nb: \"x\"", "line 2, column 4: the rule b cannot stand in a terminal; make it one with an upper-case name"},
		{"start: A\nA: <x>", "line 2, column 4: a token cannot stand in a terminal; use it in a rule"},
		{"start: A\nA: \"a\" & \"b\"", "line 1, column 8: no text fits this"},
		{"start: a\na: \"x\" a", "line 2, column 1: the rule a never ends: each of its alternatives needs a rule that needs it again; add an alternative without that"},
		{"start: %json {", "line 1, column 14: JSON: unexpected EOF"},
		{"start: %json false", "line 1, column 8: %json: false is no schema here"},
		{"start: %regex {\"type\": 1}", `line 1, column 8: %regex works with substring_chunks, substring_words or substring_chars: json: unknown field "type"`},
		{"start: @other", "line 1, column 8: other grammars (@name) are not supported; write the rules here"},
		{"start: p::0", "line 1, column 9: rules with parameters (name::_) are not supported"},
		{"start: \"a\" %if true", "line 1, column 12: conditions (%if) are not supported"},
		{"t{x}: x", "line 1, column 2: templates (name{...}) are not supported; write out a rule for each use"},
		{"start: t{x}", "line 1, column 9: a count is written {m}, {m,}, {m,n}, {,n}, ~m or ~m..n; templates are not supported"},
		{"start.2: \"a\"", "line 1, column 6: priorities (name.2) are not supported: all ways to read a text are followed; leave it away"},
		{"start[stop=\"x\"]: /.*/", `line 1, column 7: stop hides text that the model wrote and is not supported; use suffix="..." or lazy`},
		{"start[max_tokens=3]: /.*/", "line 1, column 7: max_tokens is not supported; bound the text instead, as in /.{0,100}/"},
		{"start[lazy, temperature=0.5]: /.*/", "line 1, column 13: temperature is not supported in a grammar; set it for the request"},
		{"start[foo]: /.*/", `line 1, column 7: the attribute "foo" is not known; lazy, suffix and capture are`},
		{"A[lazy]: /.*/", "line 1, column 2: a terminal has no attributes; give them to a rule"},
		{"%declare A", "line 1, column 1: %declare is not supported; define the terminal"},
		{"%import python.NAME", "line 1, column 1: only the built-in %import common.NAME works; define other terminals here"},
		{"%import common.FOO", `line 1, column 16: common has no terminal "FOO"`},
		{"%llguidance {\"no_forcing\": true}", "line 1, column 13: the option no_forcing is not supported"},
		{"%llguidance {\"foo\": 1}", `line 1, column 13: %llguidance: json: unknown field "foo"`},
		{"start: <[x]>", "line 1, column 8: <[x]> does not name tokens; write <[123]>, <[1,5-7]>, <[^123]> or <[*]>"},
		{"start: <[0-5000]>", "line 1, column 8: <[0-5000]> names more than 4096 tokens"},
		{"start: a | \"xy\"\na[lazy]: /x/", "line 1, column 12: no text fits this, for a lazy rule that may begin here ends before"},
		{"start: \"a\xff\"", "line 1, column 10: the grammar is not valid UTF-8"},
		{"start: " + strings.Repeat("(", 300), "line 1, column 208: groups are nested deeper than 200"},
	} {
		_, err := compile(test.grammar)
		if err == nil || err.Error() != "grammar: "+test.want {
			t.Errorf("%q\n got %v\nwant grammar: %s", test.grammar, err, test.want)
		}
	}
}

func TestCommon(t *testing.T) {
	for name := range common {
		if _, err := compile("%import common." + name + "\nstart: " + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("start: (A | b)* /x/i~2..3\nA: \"a\"..\"z\" & ~\"b\"\nb[lazy]: /.*/ \"end\"\n%ignore / /", "abc")
	f.Add("%import common.INT -> N\nstart: <x> | <[1-3]> N %json {} start?", "é")
	f.Fuzz(func(t *testing.T, text, input string) {
		b := grammar.NewBuilder(grammar.Limits{Rules: 10000, Expressions: 10000, Derivatives: 10000, Items: 2000, Sets: 10000, Threads: 32})
		symbol, err := Compile(b, text, Options{JSON: func([]byte) (grammar.Symbol, error) { return b.Special("{}"), nil }})
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
