package server

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Answers that come token by token are written without reflection.

const hexDigits = "0123456789abcdef"

// appendString appends s as JSON. Bytes that are no UTF-8 become U+FFFD.
func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' { // which end lines in JavaScript
				b = append(b, s[from:i]...)
				b = appendUnit(b, r)
				from = i + n
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = appendUnit(b, rune(c))
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// appendUnit appends the escape of a character of one unit of UTF-16.
func appendUnit(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// leastLogProb stands for the logarithm of 0, which JSON cannot say.
const leastLogProb = -9999

// finite is the logarithm of a probability as JSON can say it.
func finite(p float64) float64 {
	switch {
	case !(p >= leastLogProb):
		return leastLogProb
	case p == 0:
		return 0 // not -0
	}
	return p
}

// appendLogProb appends the logarithm of a probability.
func appendLogProb(b []byte, p float64) []byte {
	return strconv.AppendFloat(b, finite(p), 'g', -1, 64)
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// encode is v as JSON, with < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
