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

// maxJSONDepth is how deep objects and arrays may stand within each other. The
// files of a hub need less than ten levels.
const maxJSONDepth = 64

// A jsonScanner reads JSON as Python's json module does, which writes most of
// these files: NaN, Infinity and -Infinity are numbers. encoding/json is not
// used because it refuses those, keeps no order, and hides duplicate keys.
type jsonScanner struct {
	file  string
	data  []byte
	pos   int
	base  int64 // where data begins in the file
	depth int
}

func (s *jsonScanner) errorf(at int, format string, args ...any) error {
	return &FormatError{
		File:    s.file,
		Offset:  s.base + int64(at),
		Problem: fmt.Sprintf(format, args...),
		Err:     ErrFormat,
	}
}

// peek skips white space and returns the byte after it, 0 at the end.
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

// expect skips white space and one byte that must be c.
func (s *jsonScanner) expect(c byte, where string) error {
	if got := s.peek(); got != c || s.pos >= len(s.data) {
		return s.errorf(s.pos, "%s instead of %q %s", s.found(), c, where)
	}
	s.pos++
	return nil
}

// found describes what stands at the current position.
func (s *jsonScanner) found() string {
	if s.pos >= len(s.data) {
		return "end of the JSON text"
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return fmt.Sprintf("%q", r)
}

// object reads an object and calls member for each key, with the scanner at the
// value, which member must read.
func (s *jsonScanner) object(member func(key string, at int) error) error {
	return s.sequence('{', '}', func() error {
		s.peek()
		at := s.pos
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':', "after a key"); err != nil {
			return err
		}
		return member(key, at)
	})
}

// array reads an array and calls element before each element, which element must
// read.
func (s *jsonScanner) array(element func() error) error {
	return s.sequence('[', ']', element)
}

func (s *jsonScanner) sequence(opening, closing byte, item func() error) error {
	if err := s.expect(opening, "at the start of a value"); err != nil {
		return err
	}
	if s.depth++; s.depth > maxJSONDepth {
		return s.errorf(s.pos, "objects and arrays more than %d deep", maxJSONDepth)
	}
	defer func() { s.depth-- }()
	if s.peek() == closing {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.peek() == closing {
			s.pos++
			return nil
		}
		if err := s.expect(',', "after an element"); err != nil {
			return err
		}
	}
}

// end checks that nothing but white space is left.
func (s *jsonScanner) end() error {
	if s.peek(); s.pos < len(s.data) {
		return s.errorf(s.pos, "%s after the end of the JSON value", s.found())
	}
	return nil
}

// string reads a string. A surrogate without its partner becomes U+FFFD.
func (s *jsonScanner) string() (string, error) {
	if err := s.expect('"', "at the start of a string"); err != nil {
		return "", err
	}
	start := s.pos
	var unescaped []byte // what stands before start, once an escape was seen
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			run := s.data[start:s.pos]
			if !utf8.Valid(run) {
				return "", s.errorf(start, "a string that is not UTF-8")
			}
			s.pos++
			if unescaped == nil {
				return string(run), nil
			}
			return string(append(unescaped, run...)), nil
		case c == '\\':
			run := s.data[start:s.pos]
			if !utf8.Valid(run) {
				return "", s.errorf(start, "a string that is not UTF-8")
			}
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			unescaped = utf8.AppendRune(append(unescaped, run...), r)
			start = s.pos
		case c < ' ':
			return "", s.errorf(s.pos, "control character %#02x in a string", c)
		default:
			s.pos++
		}
	}
	return "", s.errorf(s.pos, "the JSON text ends within a string")
}

// escape reads a backslash and what it stands for.
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
	return 0, s.errorf(at, `unknown escape \%c in a string`, c)
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

// literals are the words of JSON and those that Python adds.
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

// scalar reads a literal, string or number: nil, bool, string, int64 or float64.
// A whole number that no int64 holds is a float64, as the 10^30 that many
// tokenizer_config.json have for "no limit".
func (s *jsonScanner) scalar() (any, error) {
	c := s.peek()
	if c == '"' {
		return s.string()
	}
	rest := s.data[s.pos:]
	for _, l := range literals {
		if bytes.HasPrefix(rest, []byte(l.text)) {
			s.pos += len(l.text)
			return l.value, nil
		}
	}
	n, whole := scanNumber(rest)
	if n == 0 {
		return nil, s.errorf(s.pos, "%s instead of a value", s.found())
	}
	at, text := s.pos, string(rest[:n])
	s.pos += n
	if whole {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v, nil
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) {
		return nil, s.errorf(at, "number %.40s is beyond the range of a float64", text)
	}
	return v, nil
}

// scanNumber returns the length of the JSON number that b begins with, 0 when it
// begins with none, and whether it has neither fraction nor exponent.
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
		end = n + 1 // a leading zero is a number of its own
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
