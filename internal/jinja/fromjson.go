package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON reads a value as Python's json.loads does: objects keep the order
// of their keys, integers keep their size, NaN and Infinity are numbers.
// Trusted says whose text the strings in it are, as for String. Errors match
// ErrJSON.
func FromJSON(data []byte, trusted bool) (Value, error) {
	d := &jsonDecoder{s: string(data), trusted: trusted}
	v, err := d.value(0)
	if err == nil {
		if d.space(); d.i < len(d.s) {
			err = errors.New("there is more after the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w at byte %d", ErrJSON, err, d.i)
	}
	return v, nil
}

// filterFromJSON reads a string as JSON. Its strings are the template's where
// all of the text is.
func filterFromJSON(in *interp, v Value, a *callArgs) Value {
	a.bind()
	in.needDefined(v)
	s := a.argStr(v)
	in.step(2 * len(s.s)) // it is read twice, byte by byte
	values := 1
	for i := range len(s.s) {
		if strings.IndexByte(",:[{", s.s[i]) >= 0 {
			values++
		}
	}
	in.growTimes(values, jsonValueSize)
	in.grow(2 * len(s.s))
	out, err := FromJSON([]byte(s.s), s.trusted())
	if err != nil {
		panic(valueErrorf("from_json: %v", err))
	}
	return out
}

// jsonValueSize is the most memory that a value of JSON takes, its text aside:
// an entry of a dict with its place in the index.
const jsonValueSize = 256

type jsonDecoder struct {
	s       string
	i       int
	trusted bool
}

func (d *jsonDecoder) space() {
	for d.i < len(d.s) && strings.IndexByte(" \t\n\r", d.s[d.i]) >= 0 {
		d.i++
	}
}

// take skips c when it comes next.
func (d *jsonDecoder) take(c byte) bool {
	if d.i < len(d.s) && d.s[d.i] == c {
		d.i++
		return true
	}
	return false
}

var jsonConstants = []struct {
	text  string
	value Value
}{
	{"null", None}, {"true", Bool(true)}, {"false", Bool(false)},
	{"NaN", Float{f: math.NaN()}}, {"Infinity", Float{f: math.Inf(1)}}, {"-Infinity", Float{f: math.Inf(-1)}},
}

func (d *jsonDecoder) value(depth int) (Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("nested deeper than %d", maxNesting)
	}
	d.space()
	if d.i >= len(d.s) {
		return nil, errors.New("unexpected end")
	}
	switch d.s[d.i] {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		return d.str()
	}
	for _, c := range jsonConstants {
		if strings.HasPrefix(d.s[d.i:], c.text) {
			d.i += len(c.text)
			return c.value, nil
		}
	}
	return d.number()
}

func (d *jsonDecoder) object(depth int) (Value, error) {
	out := NewDict()
	d.i++
	if d.space(); d.take('}') {
		return out, nil
	}
	for {
		if d.space(); d.i >= len(d.s) || d.s[d.i] != '"' {
			return nil, errors.New("expected a string as key")
		}
		key, err := d.str()
		if err != nil {
			return nil, err
		}
		if d.space(); !d.take(':') {
			return nil, errors.New("expected ':'")
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.put(stringKey(key.s), key, v)
		if d.space(); d.take('}') {
			return out, nil
		}
		if !d.take(',') {
			return nil, errors.New("expected ',' or '}'")
		}
	}
}

func (d *jsonDecoder) array(depth int) (Value, error) {
	out := NewList()
	d.i++
	if d.space(); d.take(']') {
		return out, nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
		if d.space(); d.take(']') {
			return out, nil
		}
		if !d.take(',') {
			return nil, errors.New("expected ',' or ']'")
		}
	}
}

func (d *jsonDecoder) number() (Value, error) {
	start := d.i
	digits := func() int {
		from := d.i
		for d.i < len(d.s) && isDigitByte(d.s[d.i]) {
			d.i++
		}
		return d.i - from
	}
	d.take('-')
	whole := d.i
	n := digits()
	if n == 0 || n > 1 && d.s[whole] == '0' {
		d.i = start
		return nil, errors.New("expected a value")
	}
	isFloat := false
	if d.take('.') {
		if isFloat = true; digits() == 0 {
			return nil, errors.New("expected a digit after the point")
		}
	}
	if d.take('e') || d.take('E') {
		if !d.take('+') {
			d.take('-')
		}
		if isFloat = true; digits() == 0 {
			return nil, errors.New("expected a digit in the exponent")
		}
	}
	text := d.s[start:d.i]
	if isFloat {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, err
		}
		return Float{f: f}, nil
	}
	if small, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int{small: small}, nil
	}
	if n > maxIntDigits {
		return nil, fmt.Errorf("an integer of %d digits; at most %d are allowed", n, maxIntDigits)
	}
	return wideInt(text, false), nil
}

// str reads a string. Half a surrogate pair becomes U+FFFD.
func (d *jsonDecoder) str() (*Str, error) {
	d.i++
	start := d.i
	var b []byte // nil until an escape is found
	for d.i < len(d.s) {
		c := d.s[d.i]
		switch {
		case c == '"':
			text := d.s[start:d.i]
			if b != nil {
				text = string(append(b, text...))
			}
			d.i++
			return String(text, d.trusted), nil
		case c < ' ':
			return nil, errors.New("control character in a string")
		case c != '\\':
			d.i++
			continue
		}
		b = append(b, d.s[start:d.i]...)
		d.i++
		r, err := d.escape()
		if err != nil {
			return nil, err
		}
		b = utf8.AppendRune(b, r)
		start = d.i
	}
	return nil, errors.New("unterminated string")
}

func (d *jsonDecoder) escape() (rune, error) {
	if d.i >= len(d.s) {
		return 0, errors.New("unterminated string")
	}
	c := d.s[d.i]
	d.i++
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		return rune("\"\\/\b\f\n\r\t"[at]), nil
	}
	if c != 'u' {
		return 0, errors.New("invalid escape")
	}
	r, err := d.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if strings.HasPrefix(d.s[d.i:], `\u`) {
		back := d.i
		d.i += 2
		low, err := d.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
		d.i = back
	}
	return utf8.RuneError, nil
}

func (d *jsonDecoder) hex4() (rune, error) {
	r, ok := hexDigits(d.s[d.i:], 4)
	if !ok {
		return 0, errors.New("short or invalid \\u escape")
	}
	d.i += 4
	return r, nil
}
