package tokenizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// Some parts of Hugging Face tokenizers use an older Unicode than package unicode: the forms of UAX
// #15, StripAccents and UnicodeScripts use 9.0, and all of BERT uses 8.0. For them a newer
// character has no class. The few characters that changed class since are listed below.

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

// isAccent reports whether r is a nonspacing mark (Mn) in Unicode 8.0.
func isAccent(r rune) bool {
	switch {
	case r < 0x300, r == 0x1885, r == 0x1886, r == 0xA9BD, r == 0x111C9:
		return false
	case r == 0x1734:
		return true
	}
	return unicode.Is(unicode.Mn, r) && unicode.Is(unicode8, r)
}

// isBertPunctuation reports whether r is punctuation (P) in Unicode 8.0 or a symbol of ASCII.
func isBertPunctuation(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return classes()[r]&(punct|symbol) != 0
	case r == 0x166D, r == 0x111C9:
		return true
	}
	return classes()[r]&punct != 0 && unicode.Is(unicode8, r)
}

// isOther reports whether r is a control, format or private-use character (Cc, Cf, Co) in Unicode
// 8.0.
func isOther(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Co) || unicode.Is(unicode.Cf, r) && unicode.Is(unicode8, r)
}

// oldScripts holds the scripts in Unicode 9.0 of characters whose script has changed since.
var oldScripts = map[rune]string{
	0x0589: "Common", 0x061C: "Common", 0x0953: "Devanagari", 0x0954: "Devanagari",
}
