package tokenizer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces returns the pieces of text under patterns that each isolate their matches, separated by |.
func pieces(text string, patterns ...finder) string {
	var s splitter
	for _, p := range patterns {
		s = append(s, split{pattern: p, behavior: isolated})
	}
	var out []string
	s.chain(nil, func(piece string, _ bool) { out = append(out, piece) })(text, true)
	return strings.Join(out, "|")
}

func TestPreTokenizers(t *testing.T) {
	tests := []struct{ pre, text, want string }{
		{"gpt-2", "Hello  world's 123 'S\n\n x", "Hello| | world|'s| 123| '|S|\n\n| x"},
		{"gpt-2", "a \t b", "a| \t| b"},
		{"gpt-2", "a\tb \u00a0", "a|\t|b| \u00a0"},
		{"gpt-2", "we'll'd'x", "we|'ll|'d|'|x"},
		{"gpt-2", "e\u0301½x", "e|\u0301|½|x"},
		{"starcoder", "ab12 3", "ab|1|2| |3"},
		{"llama-bpe", "Hello  world'S 12345!!\n\n x", "Hello| | world|'S| |123|45|!!\n\n| x"},
		{"llama-bpe", "it'\u017F 'LL 'Re 'tx", "it|'\u017F| '|LL| '|Re| '|tx"},
		{"llama-bpe", "a'T'Ve.b\tc\r\nd", "a|'T|'Ve|.b|\tc|\r\n|d"},
		{"llama-bpe", "  \n  \n  x", "  \n  \n| | x"},
		{"llama-bpe", "x   ", "x|   "},
		{"llama-bpe", "\u00a0y\u0301z", "\u00a0y|\u0301z"},
		{"qwen2", "v3.14 e\u0301", "v|3|.|1|4| e|\u0301"},
		{"qwen35", "v3.14 e\u0301 \u0301", "v|3|.|1|4| e\u0301| \u0301"},
		{"seed-coder", "a!\nb", "a|!|\n|b"},
		{"gpt-4o", "CamelCaseWORDs don'T x's'm", "Camel|Case|WORDs| don'T| x's|'m"},
		{"gpt-4o", "世界ABC世x 12345 ./\n/a", "世界ABC世x| |123|45| ./\n/|a"},
		{"gpt-4o", "A中B ǅx", "A中|B| ǅx"},
		{"gpt-4o", "\u0301ABC e\u0301", "\u0301ABC| e|\u0301"},
		{"gpt-4o", "ПриветHello ΑΒγ", "ПриветHello| ΑΒγ"},
		{"tekken", "CamelCase don't 12", "Camel|Case| don|'t| |1|2"},
		{"deepseek-v3", "Hi there's 世界カナ123456 x!y\n", "Hi| there|'s| |世界カナ|123|456| x|!y|\n"},
		{"deepseek-v3", "\x00\x01 control\x7f", "\x00\x01| control|\x7f"},
		{"deepseek-coder", "if (x1) {\n\ty\n}", "if| (|x|1|)| {|\n|\ty|\n|}"},
		{"deepseek-coder", "a世界b  c+d", "a|世界|b| | c|+|d"},
		{"deepseek-llm", "Hi\u3000there! 世界12  ", "Hi|\u3000there|!| |世界|12|  "},
		{"falcon", "a.b 1234$x", "a|.|b| |123|4|$|x"},
		{"default", "a`b 1234", "a|`|b| |123|4"},
	}
	for _, test := range tests {
		if got := pieces(test.text, ggufPreTokenizers[test.pre].patterns...); got != test.want {
			t.Errorf("%s: %q\n got %q\nwant %q", test.pre, test.text, got, test.want)
		}
	}
}

// TestPublishedPatterns checks expressions of tokenizer.json whose matchers are written by hand, or
// that are programs.
func TestPublishedPatterns(t *testing.T) {
	const (
		kimi  = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
		aya   = `\d{1,3}(?=(?:\d{3})*\b)`
		bloom = ` ?[^(\s|[.,!?…。，、।۔،])]+`
	)
	tests := []struct{ expression, text, want string }{
		{kimi, "ab中文Cd's 中  中 1234", "ab|中文|Cd's| |中| | |中| |123|4"},
		{kimi, "camelCase e\u0301!\n", "camel|Case| e\u0301|!\n"},
		{aya, "1234567 12a 12_ 12. 1", "1|234|567| 12a 12_ |12|. |1"},
		{aya, "٣٤٥٦ 12٣٤", "٣|٤٥٦| |1|2٣٤"},
		{bloom, "Hello, world (x) a", "Hello|,| world| (|x|)| a"},
	}
	for _, test := range tests {
		f, err := expressionFor(test.expression)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		if got := pieces(test.text, f); got != test.want {
			t.Errorf("%s: %q\n got %q\nwant %q", test.expression, test.text, got, test.want)
		}
	}
}

// TestInvalidBytes checks that invalid bytes count as symbols.
func TestInvalidBytes(t *testing.T) {
	if got, want := pieces("a \xff\xfeb", classes.matcher((*properties).matchGPT2)), "a| \xff\xfe|b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnicode16 checks that characters newer than package unicode have their class.
func TestUnicode16(t *testing.T) {
	tests := []struct {
		r    rune
		want class
	}{
		{0x1C89, upper}, {0x1C8A, lower}, {0x10D4E, letter}, {0x2EBF0, letter}, {0x0897, mark},
		{0x1CCF0, number}, {0x1B7F, punct}, {0x1F8B2, symbol}, {'\u3000', space}, {0x0378, 0},
	}
	for _, test := range tests {
		if got := classes()[test.r]; got != test.want {
			t.Errorf("%U: class %b, want %b", test.r, got, test.want)
		}
	}
	if !isWord(0x1CCF0) || !isWord('_') || !isWord(0x200D) || isWord('-') || isWord(0x1F8B2) {
		t.Error("isWord is wrong")
	}
}

// TestMatchesAdvance checks that every pattern finds its matches in order and none that is empty.
func TestMatchesAdvance(t *testing.T) {
	alphabet := []rune("aB'sſt 1２\n\r\t.!é\u0301中あ\u3000\u0085\u200d\U0001F600\x00")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom(alphabet)).Draw(t, "text") + rapid.String().Draw(t, "rest")
		for expression, p := range patterns {
			at := 0
			p.each(nil, text, func(lo, hi int) bool {
				if lo < at || hi <= lo || hi > len(text) {
					t.Fatalf("%s: in %q from %d: found %d to %d", expression, text, at, lo, hi)
				}
				at = hi
				return true
			})
		}
	})
}

func TestSplitBehaviors(t *testing.T) {
	tests := []struct {
		behavior behavior
		invert   bool
		want     string
	}{
		{isolated, false, "-|ab|-|-|c|-"},
		{removed, false, "ab|c"},
		{removed, true, "-|-|-|-"},
		{contiguous, false, "-|ab|--|c|-"},
		{mergedWithPrevious, false, "-|ab-|-|c-"},
		{mergedWithNext, false, "-ab|-|-c|-"},
		{mergedWithPrevious, true, "-ab|-|-c|-"},
	}
	for _, test := range tests {
		var out []string
		s := split{pattern: literal("-"), behavior: test.behavior, invert: test.invert}
		s.cut(nil, "-ab--c-", true, func(piece string, first bool) {
			if first != (len(out) == 0 && test.behavior != removed || test.want[0] == '-' && len(out) == 0) {
				t.Errorf("%s: first is %t for piece %d", test.behavior, first, len(out))
			}
			out = append(out, piece)
		})
		if got := strings.Join(out, "|"); got != test.want {
			t.Errorf("%s, invert %t: got %q, want %q", test.behavior, test.invert, got, test.want)
		}
	}
}
