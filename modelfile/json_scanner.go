package modelfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth is the maximum nesting of objects and arrays. Files of a hub need less than ten
// levels.
const maxJSONDepth = 64

// A jsonScanner parses JSON like Python's json module, which writes most of these files: NaN,
// Infinity and -Infinity are numbers. encoding/json rejects those, loses the order of members, and
// hides duplicate keys.
type jsonScanner struct {
	file  string
	data  []byte
	pos   int
	base  int64 // offset of data in the file
	depth int

	memory *allowance // for the values built from the text
}

// charge counts n bytes to be allocated for the item at position at.
func (s *jsonScanner) charge(at int, n int64) error {
	if !s.memory.spend(n) {
		return s.errorf(at, "the text expands out of proportion: it would take more than %d bytes of memory", s.memory.most)
	}
	return nil
}

func (s *jsonScanner) errorf(at int, format string, args ...any) error {
	return &FormatError{
		File:    s.file,
		Offset:  s.base + int64(at),
		Problem: fmt.Sprintf(format, args...),
		Err:     ErrFormat,
	}
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *jsonScanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// expect skips white space and one byte, which must be c.
func (s *jsonScanner) expect(c byte, where string) error {
	if got := s.peek(); got != c || s.pos >= len(s.data) {
		return s.errorf(s.pos, "%s instead of %q %s", s.found(), c, where)
	}
	s.pos++
	return nil
}

// found describes the text at the current position.
func (s *jsonScanner) found() string {
	if s.pos >= len(s.data) {
		return "end of the JSON text"
	}
	r, size := utf8.DecodeRune(s.data[s.pos:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("byte %#02x", s.data[s.pos])
	}
	return fmt.Sprintf("%q", r)
}

// begin reads the opening bracket of an object or array, and reports whether it has an item. The
// caller reads the item and then calls next.
func (s *jsonScanner) begin(opening byte) (more bool, err error) {
	if err := s.expect(opening, "at the start of a value"); err != nil {
		return false, err
	}
	if s.depth++; s.depth > maxJSONDepth {
		return false, s.errorf(s.pos, "objects and arrays more than %d deep", maxJSONDepth)
	}
	if s.peek() != closing(opening) {
		return true, nil
	}
	s.pos++
	s.depth--
	return false, nil
}

// next reads the separator or closing bracket after an item, and reports whether another item
// follows.
func (s *jsonScanner) next(opening byte) (more bool, err error) {
	if s.peek() == closing(opening) {
		s.pos++
		s.depth--
		return false, nil
	}
	if err := s.expect(',', "after an element"); err != nil {
		return false, err
	}
	return true, nil
}

// closing returns the closing bracket for an opening one.
func closing(opening byte) byte {
	if opening == '{' {
		return '}'
	}
	return ']'
}

// key reads the name of a member and the following colon. at is the position of the name. The name
// may be a view of the text.
func (s *jsonScanner) key() (name []byte, at int, err error) {
	s.peek()
	at = s.pos
	if name, err = s.bytes(); err == nil {
		err = s.expect(':', "after a key")
	}
	return name, at, err
}

// skip reads and discards any value.
func (s *jsonScanner) skip() error {
	switch opening := s.peek(); opening {
	case '"':
		_, _, err := s.quoted()
		return err
	case '{', '[':
		more, err := s.begin(opening)
		for more {
			if opening == '{' {
				if err := s.skipKey(); err != nil {
					return err
				}
			}
			if err := s.skip(); err != nil {
				return err
			}
			more, err = s.next(opening)
		}
		return err
	}
	_, n, _, err := s.word()
	s.pos += n
	return err
}

func (s *jsonScanner) skipKey() error {
	s.peek()
	if _, _, err := s.quoted(); err != nil {
		return err
	}
	return s.expect(':', "after a key")
}

// end checks that only white space is left.
func (s *jsonScanner) end() error {
	if s.peek(); s.pos < len(s.data) {
		return s.errorf(s.pos, "%s after the end of the JSON value", s.found())
	}
	return nil
}

// quoted reads a string and returns the text between its quotes, and whether it has escapes.
func (s *jsonScanner) quoted() (text []byte, escapes bool, err error) {
	if err := s.expect('"', "at the start of a string"); err != nil {
		return nil, false, err
	}
	start := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			text = s.data[start:s.pos]
			if !utf8.Valid(text) {
				return nil, false, s.errorf(start, "a string that is not UTF-8")
			}
			s.pos++
			return text, escapes, nil
		case c == '\\':
			escapes = true
			if _, err := s.escape(); err != nil {
				return nil, false, err
			}
		case c < ' ':
			return nil, false, s.errorf(s.pos, "control character %#02x in a string", c)
		default:
			s.pos++
		}
	}
	return nil, false, s.errorf(s.pos, "the JSON text ends within a string")
}

// bytes reads a string. The result is a view of the text if it has no escapes. An unpaired
// surrogate becomes U+FFFD.
func (s *jsonScanner) bytes() ([]byte, error) {
	at := s.pos
	text, escapes, err := s.quoted()
	if err != nil || !escapes {
		return text, err
	}
	if err := s.charge(at, textBytes(len(text))); err != nil {
		return nil, err
	}
	return unescape(text), nil
}

// unescape replaces the escapes in a text that quoted has returned. The result is never longer than
// the text.
func unescape(text []byte) []byte {
	in := jsonScanner{data: text}
	out := make([]byte, 0, len(text))
	for in.pos < len(text) {
		if c := text[in.pos]; c != '\\' {
			out = append(out, c)
			in.pos++
			continue
		}
		r, _ := in.escape() // quoted has checked it
		out = utf8.AppendRune(out, r)
	}
	return out
}

// escape reads a backslash and the characters after it, and returns the character they represent.
func (s *jsonScanner) escape() (rune, error) {
	at := s.pos
	s.pos++
	if s.pos >= len(s.data) {
		return 0, s.errorf(at, "the JSON text ends within a string")
	}
	c := s.data[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := hex4(s.data[s.pos:])
		if !ok {
			return 0, s.errorf(at, `\u without four hexadecimal digits`)
		}
		s.pos += 4
		if utf16.IsSurrogate(r) {
			if rest := s.data[s.pos:]; bytes.HasPrefix(rest, []byte(`\u`)) {
				if low, ok := hex4(rest[2:]); ok {
					if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
						s.pos += 6
						return pair, nil
					}
				}
			}
			return utf8.RuneError, nil
		}
		return r, nil
	}
	return 0, s.errorf(at, `unknown escape %q in a string`, s.data[at:s.pos])
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}

// literals are the literals of JSON and those that Python adds.
var literals = []struct {
	text  string
	value any
}{
	{"null", nil},
	{"true", true},
	{"false", false},
	{"NaN", math.NaN()},
	{"Infinity", math.Inf(1)},
	{"-Infinity", math.Inf(-1)},
}

// word finds the next literal or number and its length n, without moving past it. literal is the
// literal's index, or -1 for a number; whole reports whether the number is whole.
func (s *jsonScanner) word() (literal, n int, whole bool, err error) {
	s.peek()
	rest := s.data[s.pos:]
	for i := range literals {
		if text := literals[i].text; len(rest) >= len(text) && string(rest[:len(text)]) == text {
			return i, len(text), false, nil
		}
	}
	n, whole = scanNumber(rest)
	if n == 0 {
		err = s.errorf(s.pos, "%s instead of a value", s.found())
	}
	return -1, n, whole, err
}

// longNumber is the length in bytes from which the memory for parsing a number is charged.
const longNumber = 64

// scalar reads a literal or number: nil, bool, int64 or float64. A whole number beyond the range of
// int64 becomes a float64, such as the 10^30 that many tokenizer_config.json have for "no limit".
func (s *jsonScanner) scalar() (any, error) {
	literal, n, whole, err := s.word()
	if err != nil {
		return nil, err
	}
	at := s.pos
	s.pos += n
	if literal >= 0 {
		return literals[literal].value, nil
	}
	text := s.data[at:s.pos]
	if n > longNumber {
		// Each of the two conversions makes a copy, and one more for its error.
		if err := s.charge(at, 4*textBytes(n)); err != nil {
			return nil, err
		}
	}
	if whole {
		if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return v, nil
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if errors.Is(err, strconv.ErrRange) {
		return nil, s.errorf(at, "number %.40s is beyond the range of a float64", text)
	}
	return v, nil
}

// scanNumber returns the length of the JSON number at the start of b, or 0 if there is none, and
// whether the number has neither fraction nor exponent.
func scanNumber(b []byte) (n int, whole bool) {
	digits := func(i int) int {
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i
	}
	if n < len(b) && b[n] == '-' {
		n++
	}
	end := digits(n)
	if end == n {
		return 0, false
	}
	if b[n] == '0' {
		end = n + 1 // no digit may follow a leading zero
	}
	n, whole = end, true
	if n < len(b) && b[n] == '.' {
		if end := digits(n + 1); end > n+1 {
			n, whole = end, false
		}
	}
	if n < len(b) && b[n]|0x20 == 'e' {
		from := n + 1
		if from < len(b) && (b[from] == '+' || b[from] == '-') {
			from++
		}
		if end := digits(from); end > from {
			n, whole = end, false
		}
	}
	return n, whole
}
