package tokenizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// Parts of Hugging Face tokenizers go by an older Unicode than package unicode: the forms of UAX #15,
// StripAccents and UnicodeScripts by 9.0, and everything of BERT's by 8.0. To them a character that came
// later has no class. The few that have another class since are named below.

var (
	unicode8 = rangetable.Assigned("8.0.0")
	unicode9 = rangetable.Assigned("9.0.0")
)

// isMark reports whether r is a mark (M) in Unicode 9.0.
func isMark(r rune) bool {
	switch {
	case r < 0x300, r == 0x111C9:
		return false
	case r == 0x1CF2, r == 0x1CF3:
		return true
	}
	return unicode.Is(unicode.M, r) && unicode.Is(unicode9, r)
}

// isAccent reports whether r is a mark that takes no room (Mn) in Unicode 8.0.
func isAccent(r rune) bool {
	switch {
	case r < 0x300, r == 0x1885, r == 0x1886, r == 0xA9BD, r == 0x111C9:
		return false
	case r == 0x1734:
		return true
	}
	return unicode.Is(unicode.Mn, r) && unicode.Is(unicode8, r)
}

// isBertPunctuation reports whether r is of punctuation (P) in Unicode 8.0, for which all symbols of ASCII
// count.
func isBertPunctuation(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return classes()[r]&(punct|symbol) != 0
	case r == 0x166D, r == 0x111C9:
		return true
	}
	return classes()[r]&punct != 0 && unicode.Is(unicode8, r)
}

// isOther reports whether r is a control or format character or for private use (Cc, Cf, Co) in Unicode
// 8.0.
func isOther(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Co) || unicode.Is(unicode.Cf, r) && unicode.Is(unicode8, r)
}

// oldScripts are the scripts in Unicode 9.0 of characters that have another one since.
var oldScripts = map[rune]string{
	0x0589: "Common", 0x061C: "Common", 0x0953: "Devanagari", 0x0954: "Devanagari",
}
