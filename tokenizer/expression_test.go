package tokenizer

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestExpressionsAgreeWithMatchers compares the expressions that have matchers with their programs.
func TestExpressionsAgreeWithMatchers(t *testing.T) {
	parts := []string{
		"a", "B", "é", "ſ", "世", "ー", "ก", "\u0301", "1", "²", "٣", " ", "  ", "\t", "\u3000", "\u0085", "\n", "\r\n", "'", "'s", "'LL",
		"’", ".", "!", "/", "_", "$", "(", "\x00", "\u200b", "😀", "ǅ", "\U00010D4E", "\xff",
	}
	for expression, matcher := range patterns {
		if expression == `\s+$` {
			continue // its matcher relies on what is cut before
		}
		e, err := compileExpression(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 20).Draw(t, "parts"), "")
			if got, want := pieces(text, e), pieces(text, matcher); got != want {
				t.Errorf("%s: %q: program %q, matcher %q", expression, text, got, want)
			}
		})
	}
}

// TestExpressionsAgreeWithRegexp compares programs with package regexp, which gives the same
// meaning to what it supports.
func TestExpressionsAgreeWithRegexp(t *testing.T) {
	parts := []string{
		"a", "b", "c", "(?:", "(", ")", ")", "|", "*", "+", "?", "*?", "+?", "??", "{2,}", "{1,3}", "{0,2}?", "[a-b]", "[^b]", ".", "(?i:", "A",
	}
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		expression := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "expression"), "")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aabcAB\n")), 0, 12, -1).Draw(t, "text")
		e, err := compileExpression(expression)
		other, otherErr := regexp.Compile(expression)
		if err != nil || otherErr != nil {
			return
		}
		compared++
		var want []string
		start := 0
		for _, m := range other.FindAllStringIndex(text, -1) {
			want = append(want, text[start:m[0]], text[m[0]:m[1]])
			start = m[1]
		}
		want = slices.DeleteFunc(append(want, text[start:]), func(s string) bool { return s == "" })
		if got := pieces(text, e); text != "" && got != strings.Join(want, "|") {
			t.Errorf("%s: %q: got %q, want %q", expression, text, got, want)
		}
	})
	if compared == 0 {
		t.Error("none was compared")
	}
}

func TestExpressions(t *testing.T) {
	for _, test := range []struct{ expression, text, want string }{
		{`[^\s\w]+`, "a, b!?c", "a|,| b|!?|c"},
		{`\d+`, "a٣1b\U00010D40", "a|٣1|b|\U00010D40"},
		{`a|\s+(?!\S)|\s+`, "a   b \t", "a|  | |b| \t"},
		{`\u4e16+`, "世世a", "世世|a"},
		{`(a)(?<n>b)(?#c)`, "abab", "ab|ab"},
		{`[]a]+`, "b]a", "b|]a"},
		{`[^]a]+`, "b]a", "b|]a"},
		{`(?i:X)`, "aXbx", "a|X|b|x"},
		{`x(?i)x|y`, "xXY yxy", "xX|Y y|xy"},
		{`(?i:[^k])`, "k\u212Aa", "k\u212A|a"},
		{`(?m:a.)b|.`, "a\nb\nc", "a\nb|\n|c"},
		{`\d{1,3}(?=(?:\d{3})*\b)`, "14159 1234567", "14|159| |1|234|567"},
		{`(?=(\d{3})+(?!\d))`, "14159 123", "14|159 |123"},
		{`(?:\r?\n)+(?!\r?\n)`, "a\r\n\nb", "a|\r\n\n|b"},
		{`(?<=a)b`, "abb", "a|b|b"},
		{`(?<!a|bc)d`, "adbcdcd", "adbcdc|d"},
		{`(?<=\s*b)c`, "b cbc", "b cb|c"},
		{`^ +`, " a\n b ", " |a\n| |b "},
		{` +$`, " a \n b ", " a| |\n b| "},
		{`\A.|.\z|c\Z`, "abcc\n", "a|bc|c|\n"},
		{`\bA|a\B`, "AA ab éA", "A|A |a|b éA"},
		{`\w+`, "a½² b", "a½²| |b"},
		{`[\w]+`, "a½² b", "a|½² |b"},
		{` ?[^(\s|[.,!?…。，、।۔،])]+`, "ab |c, d(e) f", "ab| ||c|,| d|(|e|)| f"},
		{`[[:punct:]]`, "a$b!€", "a|$|b|!|€"},
		{`[[:^alpha:]]+`, "a1 b", "a|1 |b"},
		{`[a-z&&[^aeiou]]+`, "abcde", "a|bcd|e"},
		{`[\p{L}&&[^\p{Han}]]+|\p{Han}+`, "a世b", "a|世|b"},
		{`[a\-z]+|[+--]`, "a-b,", "a-|b|,"},
		{`\p{^L}+|\P{N}`, "1!a", "1!|a"},
		{`a++b|a`, "aab aa", "aab| |a|a"},
		{`(?>a|ab)c`, "abc ac", "abc |ac"},
		{`a{2}+b`, "aaaab", "aaaab"},
		{`a+?b??`, "aab", "a|a|b"},
		{`a{,2}b|x{1`, "aaab x{1", "a|aab| |x{1"},
		{`\R`, "a\r\nb\n", "a|\r\n|b|\n"},
		{`\h+`, "fG0", "f|G|0"},
		{``, "aé\xff", "a|é|\xff"},
		{`a*`, "baac", "b|aa|c"},
		{`(?:|a)b`, "abb", "ab|b"},
	} {
		e, err := compileExpression(test.expression)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		if got := pieces(test.text, e); got != test.want {
			t.Errorf("%s: %q: got %q, want %q", test.expression, test.text, got, test.want)
		}
	}
	for _, expression := range []string{
		`(a)\1`, `(a*)*`, `(?>a*b)`, `(`, `)`, `[a`, `[[:odd:]]`, `\p{Odd}`, `\pL`, `\X`, `\K`, `\G`, `*a`, `a\`, `(?x)a`,
		`a{2,1}`, `a{9999}`, `a{2}?`, `[b-a]`, `\xff`, `\x{110000}`, strings.Repeat("(", 200), "(?:a{1000}){1000}", "\xff", `(?<a`, `(?#a`,
	} {
		if _, err := compileExpression(expression); err == nil {
			t.Errorf("%s: no error", expression)
		}
	}
}

// TestEmptyMatches checks the pieces of a text with an empty match.
func TestEmptyMatches(t *testing.T) {
	e, err := compileExpression(`(?=b)|-`)
	if err != nil {
		t.Fatal(err)
	}
	for behavior, want := range map[behavior]string{
		isolated: "a|bc|-|b", removed: "a|bc|b", contiguous: "a|bc|-|b", mergedWithPrevious: "a|bc-|b", mergedWithNext: "a|bc|-b",
	} {
		var out []string
		split{e, behavior, false}.cut(nil, "abc-b", true, func(piece string, first bool) {
			if first != (len(out) == 0) {
				t.Errorf("%s: first is %t for piece %d", behavior, first, len(out))
			}
			out = append(out, piece)
		})
		if got := strings.Join(out, "|"); got != want {
			t.Errorf("%s: got %s, want %s", behavior, got, want)
		}
	}
}

// TestExpressionsAreLinear runs expressions that would take forever if every alternative were
// tried.
func TestExpressionsAreLinear(t *testing.T) {
	const n = 200_000
	letters, pairs := strings.Repeat("a", n), strings.Repeat("ab", n/2)
	for _, test := range []struct{ expression, text string }{
		{`a+b`, letters}, {`a*a*a*b`, letters}, {`(?:a|aa)+b`, letters}, {`(?:a|b|ab)+c`, pairs}, {`a++b`, letters},
		{`a(?=.*b)`, letters + "b" + letters}, {`a(?!.*c)`, pairs}, {`a(?=(?:ab|ba|a|b)*c)`, letters + pairs + "c"},
		{`(?=(?:aaa)+$)a`, letters}, {`(?<=b.*)a`, "b" + letters}, {`(?:a{1,50}){1,50}b`, letters[:n/20]}, {`\w+(?= )`, letters},
		{`(?:a+?)+?b`, letters}, {`a.*b.*c`, pairs},
	} {
		e, err := compileExpression(test.expression)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		size := 0
		split{e, isolated, false}.cut(nil, test.text, true, func(piece string, _ bool) { size += len(piece) })
		if size != len(test.text) {
			t.Errorf("%s: pieces of %d bytes of %d", test.expression, size, len(test.text))
		}
	}
}

// FuzzExpression checks that an expression does not panic and does not split characters.
func FuzzExpression(f *testing.F) {
	f.Add(`(?i)[^\W\d]+|(?<!a)\p{N}{1,3}(?=(?:\d{3})*\b)`, "Ab 12345")
	f.Add(`(?>[a-c&&[^b]]|\R)++|^.$`, "ac\r\nb")
	f.Add(`(?:a{2,}?|(?=b)|[]\x{41}-]){1,3}`, "aaab]A-")
	f.Fuzz(func(t *testing.T, expression, text string) {
		if len(expression) > 200 || len(text) > 200 {
			return
		}
		e, err := compileExpression(expression)
		if err != nil {
			return
		}
		var whole strings.Builder
		split{e, isolated, false}.cut(nil, text+".", true, func(piece string, _ bool) {
			if utf8.ValidString(text) && !utf8.ValidString(piece) {
				t.Errorf("%q cuts %q within a character: %q", expression, text, piece)
			}
			whole.WriteString(piece)
		})
		if whole.String() != text+"." {
			t.Errorf("%q makes of %q: %q", expression, text, whole.String())
		}
	})
}
