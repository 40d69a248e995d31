package tokenizer

import "unicode"

// Hugging Face tokenizers take lower case and numbers from Rust's standard library, which uses
// Unicode 17.0.

// newCase is the lower case of characters that have one since a version after 15.0, the version of
// package unicode. In each range the distance to lower case is constant.
var newCase = []struct{ first, last, lower rune }{
	{0x1C89, 0x1C89, 0x1C8A},
	{0xA7CB, 0xA7CB, 0x0264},
	{0xA7CC, 0xA7CC, 0xA7CD},
	{0xA7CE, 0xA7CE, 0xA7CF},
	{0xA7D2, 0xA7D2, 0xA7D3},
	{0xA7D4, 0xA7D4, 0xA7D5},
	{0xA7DA, 0xA7DA, 0xA7DB},
	{0xA7DC, 0xA7DC, 0x019B},
	{0x10D50, 0x10D65, 0x10D70},
	{0x16EA0, 0x16EB8, 0x16EBB},
}

// toLower returns the lower case of r, if it is one character.
func toLower(r rune) rune {
	if r >= newCase[0].first {
		for _, c := range newCase {
			if c.first <= r && r <= c.last {
				return c.lower + r - c.first
			}
		}
	}
	return unicode.ToLower(r)
}

// isNumeric reports whether r is a number (N).
func isNumeric(r rune) bool {
	return classes()[r]&number != 0 || 0x11DE0 <= r && r <= 0x11DE9 || 0x16FF4 <= r && r <= 0x16FF6
}
