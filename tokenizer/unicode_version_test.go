package tokenizer

import "testing"

// TestUnicodeVersions checks characters that Hugging Face tokenizers classify by an older or a
// newer version of Unicode than package unicode.
func TestUnicodeVersions(t *testing.T) {
	for _, test := range []struct {
		name string
		in   func(r rune) bool
		yes  string
		no   string
	}{
		{"isMark", isMark, "\u0301\u1CF2\u1CF3\u08D4\uA9BD", "a\U000111C9\u08D3\u0897"},
		{"isAccent", isAccent, "\u0301\u1734", "a\u1885\u1DFB\u08D4\uA9BD\U000111C9\u1CF2"},
		{"isBertPunctuation", isBertPunctuation, "!$\u166D\U000111C9\u00BF", "a\u2E43\u2E44\U0001144B\u20AC"},
		{"isOther", isOther, "\x00\u00AD\u200D\uE000\u180E", "a\u0890\u08E2\U00013430"},
		{"isNumeric", isNumeric, "1½Ⅷ\U00011DE0\U00016FF4\U00010D40", "a\u0301"},
	} {
		for _, r := range test.yes {
			if !test.in(r) {
				t.Errorf("%s(%U) is false", test.name, r)
			}
		}
		for _, r := range test.no {
			if test.in(r) {
				t.Errorf("%s(%U) is true", test.name, r)
			}
		}
	}
	for r, want := range map[rune]rune{
		'A': 'a', 'Å': 'å', 0x1C89: 0x1C8A, 0xA7CB: 0x264, 0xA7DC: 0x19B, 0x10D65: 0x10D85, 0x16EB8: 0x16ED3, 'ß': 'ß',
	} {
		if got := toLower(r); got != want {
			t.Errorf("lower case of %U is %U, want %U", r, got, want)
		}
	}
	table := scripts()
	for _, same := range []string{"1\u0589", "1\u061C", "\u0953\u0954क", "世あカー", " \u08D3\U00010D40"} {
		var first uint8
		for i, r := range same {
			if i == 0 {
				first = table[r]
			}
			if table[r] != first {
				t.Errorf("%U has script %d, not %d", r, table[r], first)
			}
		}
	}
	if table['a'] == table['1'] || table['\u0301'] == table['1'] {
		t.Error("different scripts are the same")
	}
}
