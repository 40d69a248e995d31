package tokenizer

import (
	"strings"
	"testing"
)

// prePieces returns the pieces of text under one of GGUF's pre-tokenizers, separated by |.
func prePieces(t testing.TB, pre, text string) string {
	t.Helper()
	p, ok := ggufPreTokenizers[pre]
	if !ok {
		t.Fatalf("no %s", pre)
	}
	s, err := p.splitter()
	if err != nil {
		t.Fatalf("%s: %v", pre, err)
	}
	var all []string
	s.chain(nil, func(piece string, _ bool) { all = append(all, piece) })(text, true)
	return strings.Join(all, "|")
}

func TestGGUFPreTokenizers(t *testing.T) {
	spaces := func(n int) string { return strings.Repeat(" ", n) }
	for _, test := range []struct{ pre, text, want string }{
		{"jais-2", "a" + spaces(7) + "b 1234", "a|" + spaces(4) + "|" + spaces(2) + "| b| |123|4"},
		{"jais-2", spaces(600), spaces(512) + "|" + spaces(64) + "|" + spaces(16) + "|" + spaces(8)},
		{"jais-2", "a \n  1", "a| \n| | |1"},
		{"jais-2", "it's\t\t", "it|'s|\t\t"},
		{"tiny_aya", "1234567 12a", "1|234|567| |12|a"},
		{"superbpe", "ab 1234567", "ab |1|234|567"},
		{"afmoe", "x12345 日本語です。", "x|12|345| |日本語です|。"},
		{"kimi-k2", "ab中文cd's 中  中", "ab|中文|cd's| |中| | |中"},
		{"kimi-k2", " Word。中\n中1234", " Word|。|中|\n|中|123|4"},
		{"poro-chat", "hello, world (x", "hello|,| world| (|x"},
		{"viking", "ab12", "ab|1|2"},
		{"chameleon", "a<sentinel:12>  IMGIMGABZ1", "a|<|sentinel|:|1|2|>|  |IMGIMGABZ|1"},
		{"youtu", "한국어 ok, 中文，ㄅ12", "한국어| ok|,| |中文|，|ㄅ|1|2"},
		{"spark2_5", "a\n\nb 1234 !", "a|\n|\n|b| |1|2|3|4| !"},
		{"exaone-moe", "a b's, 12/\n", "a b|'s|,| |1|2|/\n"},
		{"minicpm5", "ab 1234's", "ab| |123|4|'s"},
		{"ufakzeka", "it's 12", "it|'s| |1|2"},
		{"laguna", "a \n\n b", "a| |\n\n| b"},
		{"gemma4", "a b\n\n c", "a b|\n\n| c"},
		{"whitespace", "ab  c", "ab|  |c"},
		{"granite-embed-multi-97m", "aB'll 1234", "a|B'll| |123|4"},

		// Where llama.cpp differs from the tokenizers that it reimplements.
		{"qwen2", "\t'ſー x", "\t|'ſー| x"},
		{"llama3", "\U00013460a", "\U00013460a"}, // not a letter before Unicode 16
		{"gpt-4o", "camelCase ПриветМир é\u0301", "camel|Case| ПриветМир| é|\u0301"},
		{"tekken", "aB ἈΒγΔ\u0301x", "a|B| ἈΒγΔ|\u0301x"},
		{"kimi-k2", "camelCase e\u0301 \uFADDx", "camelCase| e|\u0301| \uFADD|x"},
		{"tiny_aya", "camelCase ab1234567 12a !\u0301", "camelCase| ab|1|234|567| |12|a| !\u0301"},
		{"superbpe", "12३456", "12३|456"},
		{"deepseek-v3", "a ~b ~~! ~é", "a| |~b| |~~|!| |~é"},
		{"deepseek-coder", "a\v\u2028 ", "a|\v\u2028 "},
		{"deepseek-llm", "s\u3000 x", "s|\u3000| x"},
		{"afmoe", "Ᏸꭰ ภาษาไทย x1", "Ᏸ|ꭰ| ภาษา|ไ|ทย| x|1"},
		{"chameleon", "  a\t  b", "  |a|\t|  |b"},
	} {
		if got := prePieces(t, test.pre, test.text); got != test.want {
			t.Errorf("%s: %q: got %q, want %q", test.pre, test.text, got, test.want)
		}
	}
	// The pieces of every pre-tokenizer together are the text.
	const text = "Hello, 世界! 1234567  \n\n\tit's <sentinel:1>  ОК ครับ 한국어。\r\n   "
	for name := range ggufPreTokenizers {
		if got := strings.ReplaceAll(prePieces(t, name, text), "|", ""); got != text {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestGGUFPreTokenizersAreLinear cuts texts that would take forever if anything were quadratic.
func TestGGUFPreTokenizersAreLinear(t *testing.T) {
	const size = 1 << 17
	texts := map[string]string{}
	for name, part := range map[string]string{
		"letter": "a", "space": " ", "lines": " \n", "digit": "7", "digit and letter": "7a", "chinese": "世",
		"chinese and latin": "世a", "chinese and spaces": "世  ", "quotes": "'", "marks": "\u0301", "almost": "<sentinel:1",
		"words": "a b ", "invalid": "\xff",
	} {
		texts[name] = strings.Repeat(part, size/len(part))
	}
	for pre := range ggufPreTokenizers {
		for name, text := range texts {
			if got := len(prePieces(t, pre, text)); got < len(text) {
				t.Errorf("%s: %s: %d of %d bytes", pre, name, got, len(text))
			}
		}
	}
}
