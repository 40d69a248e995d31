package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestRegexpAgreesWithMatchers runs the expressions that have a matcher by package regexp too.
func TestRegexpAgreesWithMatchers(t *testing.T) {
	parts := []string{
		"a", "B", "é", "ſ", "世", "ー", "ก", "\u0301", "1", "²", "٣", " ", "  ", "\t", "\u3000", "\u0085", "\n", "\r\n", "'", "'s", "'LL",
		"’", ".", "!", "/", "_", "$", "(", "\x00", "\u200b", "😀",
	}
	compared := 0
	for expression, matcher := range patterns {
		f, err := compilePattern(expression)
		if err != nil {
			continue // it has a look-ahead within, an anchor, or a possessive quantifier
		}
		compared++
		rapid.Check(t, func(t *rapid.T) {
			text := ""
			for _, part := range rapid.SliceOfN(rapid.SampledFrom(parts), 0, 20).Draw(t, "parts") {
				text += part
			}
			if got, want := pieces(text, f), pieces(text, matcher); got != want {
				t.Errorf("%s: %q: regexp %q, matcher %q", expression, text, got, want)
			}
		})
	}
	if compared < 10 {
		t.Errorf("only %d expressions were compared", compared)
	}
}

// TestLookAheadIsBounded runs expressions that read far beyond their matches over a text where they do so at every
// place.
func TestLookAheadIsBounded(t *testing.T) {
	const size = 1 << 19
	for _, test := range []struct{ expression, part string }{
		{`a[^b]*b|a`, "a"}, {`a.*b.*c|a`, "ab"}, {`(?:世[^b]*)b|世`, "世"}, {`[a ]+b|a`, "a "},
	} {
		f, err := compilePattern(test.expression)
		if err != nil {
			t.Fatalf("%s: %v", test.expression, err)
		}
		text := strings.Repeat(test.part, size/len(test.part))
		count, end := 0, 0
		f.each(text, func(lo, hi int) {
			if lo < end || hi <= lo || !utf8.ValidString(text[lo:hi]) {
				t.Fatalf("%s: found %d to %d after %d", test.expression, lo, hi, end)
			}
			count, end = count+1, hi
		})
		if want := strings.Count(text, test.part[:1]); count != want {
			t.Errorf("%s: %d matches, want %d", test.expression, count, want)
		}
	}
	// What has such an end after all is found.
	f, err := compilePattern(`a[^b]*b|a`)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(pieces(strings.Repeat("a", 2*freeLookAhead)+"b", f)); got != 2*freeLookAhead+1 {
		t.Errorf("one long match became %d bytes of pieces", got)
	}
}

func TestCompilePattern(t *testing.T) {
	for _, test := range []struct{ expression, text, want string }{
		{`[^\s\w]+`, "a, b!?c", "a|,| b|!?|c"},
		{`[\S]+`, "a \u3000b", "a| \u3000|b"},
		{`\d+`, "a٣1b", "a|٣1|b"},
		{`a|\s+(?!\S)|\s+`, "a   b \t", "a|  | |b| \t"},
		{`\u4e16+`, "世世a", "世世|a"},
		{`(a)(b)`, "abab", "ab|ab"},
		{`[]a]+`, "b]a", "b|]a"},
		{`[^]a]+`, "b]a", "b|]a"},
		{`(?i:x)`, "aXb", "a|X|b"},
	} {
		f, err := compilePattern(test.expression)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		if got := pieces(test.text, f); got != test.want {
			t.Errorf("%s: %q: got %q, want %q", test.expression, test.text, got, test.want)
		}
	}
	for _, expression := range []string{
		`a(?=b)`, `(?<!a)b`, `a++`, `\bword`, `^a`, `a$`, `a*`, `[a[b]]`, `[a&&b]`, `\h`, `\W`, `(?m:.)`, `a{,3}`, `(`, `a\`, `\p{Odd}`,
	} {
		if _, err := compilePattern(expression); err == nil {
			t.Errorf("%s: no error", expression)
		}
	}
}
