package jinja

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescapeLiteral resolves the escapes of a string literal as Python does.
// The message is not empty when one is malformed.
func unescapeLiteral(s string) (text, message string) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			i++
			continue
		}
		i++
		c = s[i]
		if at := strings.IndexByte(`\'"abfnrtv`, c); at >= 0 {
			b.WriteByte("\\'\"\a\b\f\n\r\t\v"[at])
			i++
			continue
		}
		switch c {
		case '\n':
			i++
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := len(s[i:]) - len(strings.TrimLeft(s[i:min(len(s), i+3)], "01234567")) - len(s[min(len(s), i+3):])
			r, _ := strconv.ParseUint(s[i:i+n], 8, 32)
			b.WriteRune(rune(r))
			i += n
		case 'x', 'u', 'U':
			r, n, problem := hexEscape(s[i:])
			if problem != "" {
				return "", problem
			}
			b.WriteRune(r)
			i += n
		case 'N':
			return "", "characters cannot be given by name; write \\u and the code instead"
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), ""
}

// hexEscape reads \x, \u or \U without the backslash, and the second half of
// a surrogate pair. Half a pair becomes U+FFFD.
func hexEscape(s string) (r rune, length int, message string) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	r, ok := hexDigits(s[1:], digits)
	if !ok {
		return 0, 0, "truncated \\" + s[:1] + strings.Repeat("X", digits) + " escape"
	}
	if r < 0 || r > utf8.MaxRune {
		return 0, 0, "illegal Unicode character"
	}
	length = 1 + digits
	if utf16.IsSurrogate(r) && strings.HasPrefix(s[length:], `\u`) {
		if low, ok := hexDigits(s[length+2:], 4); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, length + 6, ""
			}
		}
	}
	return r, length, ""
}

// hexDigits reads n hexadecimal digits.
func hexDigits(s string, n int) (rune, bool) {
	if len(s) < n {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:n], 16, 32)
	return rune(min(v, utf8.MaxRune+1)), err == nil
}
