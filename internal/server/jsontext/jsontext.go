// Package jsontext writes JSON without reflection, for answers that are streamed token by token.
package jsontext

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as JSON. It replaces invalid UTF-8 with U+FFFD.
func AppendString[S ~string | ~[]byte](b []byte, s S) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' { // line ends in JavaScript
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

// appendUnit appends the \u escape of one UTF-16 code unit.
func appendUnit(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// AppendInt appends n in decimal.
func AppendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// AppendBytes appends p as a list of numbers.
func AppendBytes(b, p []byte) []byte {
	b = append(b, '[')
	for i, c := range p {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendInt(b, int(c))
	}
	return append(b, ']')
}

// AppendFloats appends v as a list. The values must be finite.
func AppendFloats(b []byte, v []float32) []byte {
	b = append(b, '[')
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendFloat(b, f)
	}
	return append(b, ']')
}

// AppendFloat appends f as encoding/json does. f must be finite.
func AppendFloat(b []byte, f float32) []byte {
	format := byte('f')
	if a := math.Abs(float64(f)); a != 0 && (float32(a) < 1e-6 || float32(a) >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, float64(f), format, -1, 32)
	if n := len(b); format == 'e' && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' { // 1e-09 is 1e-9
		b = append(b[:n-2], b[n-1])
	}
	return b
}

// Encode returns v as JSON. It does not escape < and >.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
