package fields

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// This file finds the ends of values in a JSON text (RFC 8259) without copying them. So a request
// is read at the speed of memory and takes no memory besides its body.

// maxDepth limits the nesting of arrays and objects. encoding/json has the same limit.
const maxDepth = 10000

// unexpected returns the error of an unexpected byte at i.
func unexpected(data []byte, i int, wanted string) error {
	if i >= len(data) {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("invalid character %q at byte %d; want %s", rune(data[i]), i, wanted)
}

// blanks returns the end of the white space at i.
func blanks(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// is reports whether the byte at i is c.
func is(data []byte, i int, c byte) bool { return i < len(data) && data[i] == c }

// valueEnd returns the end of the value at i. There must be no white space at i.
func valueEnd(data []byte, i int) (end int, err error) {
	var open []byte // the opening brackets of the objects and arrays around i
	for {
		begun := false
		if i >= len(data) {
			return i, io.ErrUnexpectedEOF
		}
		switch c := data[i]; {
		case c == '"':
			i, err = stringEnd(data, i)
		case c == '{' || c == '[':
			if len(open) == maxDepth {
				return i, fmt.Errorf("arrays and objects are nested more than %d deep", maxDepth)
			}
			if i = blanks(data, i+1); is(data, i, c+2) { // '}' or ']'
				i++
				break
			}
			open, begun = append(open, c), true
		case c == '-' || '0' <= c && c <= '9':
			i, err = numberEnd(data, i)
		default:
			i, err = wordEnd(data, i)
		}
		for !begun && err == nil {
			if len(open) == 0 {
				return i, nil
			}
			last := open[len(open)-1]
			i = blanks(data, i)
			switch {
			case is(data, i, ','):
				i = blanks(data, i+1)
				begun = true
			case is(data, i, last+2):
				i++
				open = open[:len(open)-1]
			default:
				err = unexpected(data, i, "a comma or the end")
			}
		}
		if err == nil && open[len(open)-1] == '{' {
			i, err = nameEnd(data, i)
		}
		if err != nil {
			return i, err
		}
	}
}

// nameEnd returns the beginning of the value of the member at i.
func nameEnd(data []byte, i int) (value int, err error) {
	if !is(data, i, '"') {
		return i, unexpected(data, i, "a name in quotes")
	}
	if i, err = stringEnd(data, i); err != nil {
		return i, err
	}
	if i = blanks(data, i); !is(data, i, ':') {
		return i, unexpected(data, i, "a colon")
	}
	return blanks(data, i+1), nil
}

// stringEnd returns the end of the string at i, after its closing quote.
func stringEnd(data []byte, i int) (end int, err error) {
	i++
	for {
		for i+8 <= len(data) {
			n := plain(binary.LittleEndian.Uint64(data[i:]))
			if i += n; n < 8 {
				break
			}
		}
		switch {
		case i >= len(data):
			return i, io.ErrUnexpectedEOF
		case data[i] == '"':
			return i + 1, nil
		case data[i] < ' ':
			return i, unexpected(data, i, "an escape, inside a string")
		case data[i] != '\\':
			i++
			continue
		}
		i++
		if i >= len(data) {
			return i, io.ErrUnexpectedEOF
		}
		switch data[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i++
		case 'u':
			i++
			for range 4 {
				if i >= len(data) || !isHex(data[i]) {
					return i, unexpected(data, i, "four hexadecimal digits after \\u")
				}
				i++
			}
		default:
			return i, unexpected(data, i, "what may follow a backslash")
		}
	}
}

// plain returns how many of eight bytes, lowest first, come before a quote, a backslash or a
// control character. It tests all bytes at once: the lowest byte of x that is zero is the lowest
// one whose high bit is set in (x-0x01…)&^x&0x80….
func plain(v uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := v^(ones*'"'), v^(ones*'\\')
	found := (quote-ones)&^quote | (slash-ones)&^slash | (v-ones*' ')&^v
	return bits.TrailingZeros64(found&highs) / 8
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|' ' && c|' ' <= 'f'
}

// digits returns the end of the digits at i. There must be at least one.
func digits(data []byte, i int) (end int, err error) {
	from := i
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	if i == from {
		return i, unexpected(data, i, "a digit")
	}
	return i, nil
}

// numberEnd returns the end of the number at i.
func numberEnd(data []byte, i int) (end int, err error) {
	if data[i] == '-' {
		i++
	}
	if is(data, i, '0') {
		i++
	} else if i, err = digits(data, i); err != nil {
		return i, err
	}
	if is(data, i, '.') {
		if i, err = digits(data, i+1); err != nil {
			return i, err
		}
	}
	if is(data, i, 'e') || is(data, i, 'E') {
		i++
		if is(data, i, '+') || is(data, i, '-') {
			i++
		}
		return digits(data, i)
	}
	return i, nil
}

// wordEnd returns the end of true, false or null at i.
func wordEnd(data []byte, i int) (end int, err error) {
	word := ""
	switch data[i] {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return i, unexpected(data, i, "a value")
	}
	for j := range len(word) {
		if !is(data, i+j, word[j]) {
			return i + j, unexpected(data, i+j, word)
		}
	}
	return i + len(word), nil
}
