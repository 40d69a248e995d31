package gbnf

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
)

func compile(t testing.TB, text string) (*grammar.Grammar, error) {
	t.Helper()
	b := grammar.NewBuilder(grammar.Limits{})
	symbol, err := Compile(b, text)
	if err != nil {
		return nil, err
	}
	return b.Grammar(symbol)
}

// fits reports whether text is in the language.
func fits(g *grammar.Grammar, text string) bool {
	s, ok := g.Start().Bytes([]byte(text))
	return ok && s.Ends()
}

func TestGrammars(t *testing.T) {
	for _, test := range []struct {
		name, grammar string
		yes, not      []string
	}{
		{"literal", `root ::= "a\n\"\x41\u00e9\U0001F600"`, []string{"a\n\"Aé😀"}, []string{"a", ""}},
		{"classes", `root ::= [a-c] [^a-c\n] [\]\-] [a-]`, []string{"ax]-", "cé-a"}, []string{"aax-", "a\n]-"}},
		{"dot", `root ::= . "!"`, []string{"\n!", "😀!"}, []string{"!", "ab!"}},
		{"counts", `root ::= "a"{2} "b"{1,} "c"{,2} "d"{1,3} "e"?`, []string{"aabd", "aabbbccddde"}, []string{"abd", "aad", "aabcccd", "aabdddd"}},
		{"empty", `root ::= "" | "a" |`, []string{"", "a"}, []string{"b"}},
		{"groups and lines", "# a comment\nroot ::= (\n  \"a\" # one\n  | \"b\"\n)+ |\n \"c\"\n\n", []string{"a", "abba", "c"}, []string{"", "ac"}},
		{"a rule goes on", "root ::= a\n  \"x\"\n  | b\na ::= \"1\"\nb ::= \"2\"", []string{"1x", "2"}, []string{"1", "2x"}},
		{"names", `root ::= A-b_1
A-b_1 ::= "x"`, []string{"x"}, []string{""}},
		{"left recursion", `root ::= root "+" n | n
n ::= [0-9]+`, []string{"1", "1+22+3"}, []string{"", "+", "1+"}},
		{"right recursion", `root ::= "a" root | "b"`, []string{"b", "aab"}, []string{"a"}},
		{"inner recursion", `root ::= "(" root ")" root |`, []string{"", "()", "(())()"}, []string{"(", ")("}},
		{"hidden recursion", `root ::= e root "x" | "y"
e ::= "" | "z"`, []string{"y", "yxx", "zyx"}, []string{"zy", ""}},
		{"counted rules", `root ::= p{2,3}
p ::= "(" p? ")"`, []string{"()(())", "()()()"}, []string{"()", "()()()()"}},
		{"json", `root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}`,
			[]string{`{}`, `{"a": [1, -2.5e3, {"b": "é\n\u00e9"}], "c":null}`}, []string{`[]`, `{"a":}`, `{"a": 01}`, `{a:1}`}},
		{"special tokens are their text where there are none", `root ::= <think> [^<]* </think> "!"`, []string{"<think>hm</think>!"}, []string{"<think>!"}},
		{"the grammar of vLLM's documentation", `
        root ::= select_statement
        select_statement ::= "SELECT " column " from " table " where " condition
        column ::= "col_1 " | "col_2 "
        table ::= "table_1 " | "table_2 "
        condition ::= column "= " number
        number ::= "1 " | "2 "
    `, []string{"SELECT col_1  from table_2  where col_2 = 1 "}, []string{"SELECT *"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := compile(t, test.grammar)
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

func TestErrors(t *testing.T) {
	for _, test := range []struct{ grammar, want string }{
		{"", "line 1, column 1: there is no rule root; name the rule for the whole text root"},
		{"a ::= \"b\"", "line 1, column 1: there is no rule root; name the rule for the whole text root"},
		{"root ::= a\n", "line 1, column 10: the rule a is not defined; add a line a ::= ..."},
		{"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule root is defined twice; join its alternatives with |"},
		{"root = \"a\"", "line 1, column 6: this is '=' where ::= is due behind the name root"},
		{"root ::= \"a", `line 1, column 10: this literal has no end "`},
		{"root ::= [a", "line 1, column 10: this [ has no ]"},
		{"root ::= [b-a]", "line 1, column 11: the range b-a goes backwards"},
		{"root ::= []", "line 1, column 10: no character fits this class"},
		{"root ::= (\"a\"", "line 1, column 10: this ( has no )"},
		{"root ::= \"a\")", "line 1, column 13: this ')' does not belong here"},
		{"root ::= *", "line 1, column 10: nothing stands before this * to repeat"},
		{"root ::= \"a\"{2,1}", "line 1, column 13: the minimum 2 is above the maximum 1"},
		{"root ::= \"a\"{x}", "line 1, column 13: a count is written {m}, {m,}, {m,n} or {,n}"},
		{"root ::= \"a\"{99999999}", "line 1, column 13: a count is above 16777216"},
		{"root ::= 'a'", `line 1, column 10: a literal stands in double quotes, as in "text"`},
		{"root ::= \"\\q\"", `line 1, column 11: the escape \q is not known; \n, \r, \t, \xHH, \uHHHH and \UHHHHHHHH are, and \ before a character that is no letter or digit`},
		{"root ::= \"\\u12\"", "line 1, column 11: this escape needs 4 hexadecimal digits, of a code point up to 10FFFF"},
		{"root ::= \"\\ud800\"", `line 1, column 11: the surrogate D800 is no character; write the character itself or \U and eight digits`},
		{"root ::= <[x]>", "line 1, column 10: <[x]> is not the number of a token"},
		{"root ::= <think", "line 1, column 10: a token is written <[123]> or <text>, on one line"},
		{"root ::= !a", "line 1, column 10: a token follows !, as in !<[123]> or !<text>"},
		{"root ::= \"a\" | b\nb ::= \"x\" b", "line 2, column 1: the rule b never ends: each of its alternatives needs a rule that needs it again; add an alternative without that"},
		{"root ::= \"a\xff\"", "line 1, column 12: the grammar is not valid UTF-8"},
		{"root ::= %", "line 1, column 10: this is '%' where a name, a literal, a class, a token or a group is due"},
		{"root ::= " + strings.Repeat("(", 300), "line 1, column 210: groups are nested deeper than 200"},
	} {
		_, err := compile(t, test.grammar)
		if err == nil || err.Error() != "grammar: "+test.want {
			t.Errorf("%q\n got %v\nwant grammar: %s", test.grammar, err, test.want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("root ::= (\"a\" | [b-d]+)* x{2,3}\nx ::= <x> | root? \"\\n\"", "abc")
	f.Add("root ::= !<[3]>* .", "é")
	f.Fuzz(func(t *testing.T, text, input string) {
		b := grammar.NewBuilder(grammar.Limits{Rules: 10000, Expressions: 10000, Derivatives: 10000, Items: 2000, Sets: 10000, Threads: 32})
		symbol, err := Compile(b, text)
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
