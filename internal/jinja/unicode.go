package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isSpace is Python's str.isspace of one character, and \s of its regular
// expressions: the bidirectional types WS, B and S and the category Zs.
func isSpace(r rune) bool {
	switch {
	case r < 0x80:
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	case r == 0x85 || r == 0xa0:
		return true
	}
	return r == 0x1680 || r >= 0x2000 && r <= 0x200a || r == 0x2028 || r == 0x2029 ||
		r == 0x202f || r == 0x205f || r == 0x3000
}

// isLineBreak reports whether str.splitlines ends a line at r.
func isLineBreak(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

// isWord is \w of Python's regular expressions.
func isWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isIdentifierPart reports whether r may stand in a name after its start.
func isIdentifierPart(r rune) bool {
	if r < 0x80 {
		return isWord(r)
	}
	return unicode.IsLetter(r) || unicode.In(r, unicode.Nl, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc) ||
		unicode.In(r, unicode.Other_ID_Start, unicode.Other_ID_Continue)
}

// isIdentifier is Python's str.isidentifier.
func isIdentifier(s string) bool {
	first := true
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		was := first
		first = false
		return !isIdentifierRune(r, was)
	}) < 0
}

// isIdentifierRune reports whether r may stand in a name, or begin one.
func isIdentifierRune(r rune, first bool) bool {
	start := r == '_' || unicode.IsLetter(r) || unicode.In(r, unicode.Nl, unicode.Other_ID_Start)
	return r != utf8.RuneError && (start || !first) && isIdentifierPart(r)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
