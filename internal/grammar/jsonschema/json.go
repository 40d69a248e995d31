package jsonschema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxSchemaBytes = 4 << 20
	maxDepth       = 256 // nesting of arrays and objects in a schema
)

type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// A value is a JSON value. Objects keep the order of their members, and numbers their text.
type value struct {
	kind    kind
	truth   bool
	text    string // of a string, or the source text of a number
	items   []*value
	members []member
	index   map[string]*value // of members
}

type member struct {
	name  string
	value *value
}

// get returns the value of a member of an object, or nil.
func (v *value) get(name string) *value { return v.index[name] }

// parseJSON parses the text of a schema: strict JSON without duplicate names in an object and
// without lone surrogates.
func parseJSON(text []byte) (*value, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, len(text), maxSchemaBytes)
	}
	if !utf8.Valid(text) {
		return nil, &SchemaError{"#", "the text is not UTF-8"}
	}
	r := &jsonReader{text: string(text)}
	v, err := r.value(0)
	if err == nil {
		if r.space(); r.at < len(r.text) {
			err = r.fail("there is more after the value")
		}
	}
	return v, err
}

type jsonReader struct {
	text string
	at   int
}

func (r *jsonReader) fail(reason string) error {
	return &SchemaError{"#", fmt.Sprintf("not JSON: %s at byte %d", reason, r.at)}
}

func (r *jsonReader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// take skips white space, and c if it comes next.
func (r *jsonReader) take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *jsonReader) value(depth int) (*value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: it is nested deeper than %d", ErrTooLarge, maxDepth)
	}
	r.space()
	if r.at == len(r.text) {
		return nil, r.fail("the text ends")
	}
	for _, c := range []struct {
		word  string
		value value
	}{{"null", value{}}, {"true", value{kind: boolKind, truth: true}}, {"false", value{kind: boolKind}}} {
		if strings.HasPrefix(r.text[r.at:], c.word) {
			r.at += len(c.word)
			return &c.value, nil
		}
	}
	switch c := r.text[r.at]; {
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.array(depth)
	case c == '"':
		s, err := r.str()
		return &value{kind: stringKind, text: s}, err
	case c == '-' || '0' <= c && c <= '9':
		n, err := r.number()
		return &value{kind: numberKind, text: n}, err
	}
	return nil, r.fail("no value begins here")
}

func (r *jsonReader) array(depth int) (*value, error) {
	r.at++
	v := &value{kind: arrayKind}
	if r.take(']') {
		return v, nil
	}
	for {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
		if r.take(']') {
			return v, nil
		}
		if !r.take(',') {
			return nil, r.fail("a comma or ] is missing")
		}
	}
}

func (r *jsonReader) object(depth int) (*value, error) {
	r.at++
	v := &value{kind: objectKind}
	if r.take('}') {
		return v, nil
	}
	v.index = map[string]*value{}
	for {
		if r.space(); r.at == len(r.text) || r.text[r.at] != '"' {
			return nil, r.fail("a name is missing")
		}
		name, err := r.str()
		if err != nil {
			return nil, err
		}
		if v.index[name] != nil {
			return nil, r.fail(fmt.Sprintf("the name %q stands twice in one object", name))
		}
		if !r.take(':') {
			return nil, r.fail("a colon is missing")
		}
		m, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, member{name, m})
		v.index[name] = m
		if r.take('}') {
			return v, nil
		}
		if !r.take(',') {
			return nil, r.fail("a comma or } is missing")
		}
	}
}

func (r *jsonReader) number() (string, error) {
	from := r.at
	digits := func() bool {
		start := r.at
		for r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' {
			r.at++
		}
		return r.at > start
	}
	next := func(set string) bool {
		if r.at < len(r.text) && strings.IndexByte(set, r.text[r.at]) >= 0 {
			r.at++
			return true
		}
		return false
	}
	next("-")
	if ok := next("0") || digits(); !ok {
		return "", r.fail("a number without digits")
	}
	if next(".") && !digits() {
		return "", r.fail("a fraction without digits")
	}
	if next("eE") {
		if next("+-"); !digits() {
			return "", r.fail("an exponent without digits")
		}
	}
	return r.text[from:r.at], nil
}

func (r *jsonReader) str() (string, error) {
	r.at++
	var out strings.Builder
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return out.String(), nil
		case c < 0x20:
			return "", r.fail("a control character in a string")
		case c != '\\':
			out.WriteByte(c)
			r.at++
		default:
			if err := r.escape(&out); err != nil {
				return "", err
			}
		}
	}
	return "", r.fail("a string does not end")
}

func (r *jsonReader) escape(out *strings.Builder) error {
	if r.at+1 == len(r.text) {
		return r.fail("a string does not end")
	}
	c := r.text[r.at+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		out.WriteByte("\"\\/\b\f\n\r\t"[i])
		r.at += 2
		return nil
	}
	if c != 'u' {
		return r.fail("an unknown escape")
	}
	unit, ok := r.unit()
	if ok && utf16.IsSurrogate(unit) {
		var low rune
		low, ok = r.unit()
		unit = utf16.DecodeRune(unit, low)
		ok = ok && unit != utf8.RuneError
	}
	if !ok {
		return r.fail(`a \u escape that is no character`)
	}
	out.WriteRune(unit)
	return nil
}

// unit reads \uXXXX.
func (r *jsonReader) unit() (rune, bool) {
	if len(r.text)-r.at < 6 || r.text[r.at] != '\\' || r.text[r.at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(r.text[r.at+2:r.at+6], 16, 16)
	if err != nil {
		return 0, false
	}
	r.at += 6
	return rune(n), true
}
