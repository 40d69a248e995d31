package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A value parses one value in some notation, byte by byte, and converts it to JSON without white
// space.
type value struct {
	syntax Syntax
	quote  *literal // around strings in braces
	out    []byte

	state   valueState
	stack   []byte // open brackets: {, [ and the ( of an argument list
	closing byte   // the quote that ends the string; 0: the literal quote
	key     bool   // the string or word is a key
	comma   bool   // a comma has been read and not yet written
	escape  []byte // an incomplete escape
	word    []byte // a number, a constant, a bare key
}

type valueState uint8

const (
	inValue  valueState = iota // before a value
	inKey                      // before a key or the end of an object
	inColon                    // before the separator of key and value
	inNext                     // after a value
	inString                   // within a string
	inWord                     // within a number, a constant or a bare key
)

const (
	maxDepth = 256
	maxWord  = 4096
)

// start begins a value. open is the bracket that has already been read, or 0.
func (v *value) start(syntax Syntax, open byte, quote *literal) {
	*v = value{syntax: syntax, quote: quote, out: v.out[:0], stack: v.stack[:0]}
	if open != 0 {
		v.stack = append(v.stack, open)
		v.out = append(v.out, '{')
		v.state = inKey
	}
}

// step reads from in. It returns how many syms it took. The verdict is yes at the end of the value,
// maybe if more input is needed, and no if in is not a value; then the number counts the syms
// before the fault.
func (v *value) step(in []sym, final bool) (int, verdict) {
	i := 0
	for i < len(in) {
		n, ok := v.next(in[i:], final)
		switch ok {
		case no:
			return i, no
		case maybe:
			return i, maybe
		}
		i += n
		if len(v.stack) == 0 && v.state == inNext {
			return i, yes
		}
	}
	if final && v.state == inWord && len(v.stack) == 0 && v.endWord() {
		return i, yes
	}
	return i, maybe
}

// next reads one or a few syms.
func (v *value) next(in []sym, final bool) (int, verdict) {
	c := byte(in[0])
	switch v.state {
	case inString:
		return v.inString(in, final)
	case inWord:
		if v.key && v.endsKey(c) || !v.key && endsWord(c) {
			if v.endWord() {
				return 0, yes
			}
			return 0, no
		}
		v.word = append(v.word, c)
		if len(v.word) > maxWord {
			return 0, no
		}
		return 1, yes
	}
	if isSpace(in[0]) {
		return 1, yes
	}
	switch v.state {
	case inValue:
		return v.beginValue(in, final)
	case inKey:
		return v.beginKey(in, final)
	case inColon:
		if c != v.colon() {
			return 0, no
		}
		v.out = append(v.out, ':')
		v.state = inValue
		return 1, yes
	default:
		return v.afterValue(c)
	}
}

func (v *value) top() byte {
	if len(v.stack) == 0 {
		return 0
	}
	return v.stack[len(v.stack)-1]
}

// colon returns the separator of key and value.
func (v *value) colon() byte {
	if v.top() == '(' {
		return '='
	}
	return ':'
}

func (v *value) beginValue(in []sym, final bool) (int, verdict) {
	c := byte(in[0])
	if c == ']' && v.top() == '[' && (!v.comma || v.syntax != SyntaxJSON) {
		v.comma = false
		return v.close()
	}
	v.writeComma()
	switch c {
	case '{', '[':
		if len(v.stack) >= maxDepth {
			return 0, no
		}
		v.stack = append(v.stack, c)
		v.out = append(v.out, c)
		v.state = inValue
		if c == '{' {
			v.state = inKey
		}
		return 1, yes
	}
	if n, ok := v.beginString(in, final, false); ok != no {
		return n, ok
	}
	if endsWord(c) {
		return 0, no
	}
	v.key, v.word, v.state = false, v.word[:0], inWord
	return 0, yes
}

// beginString reads a quote if one is next.
func (v *value) beginString(in []sym, final, key bool) (int, verdict) {
	n, ok := 0, no
	c := byte(in[0])
	switch {
	case c == '"', c == '\'' && v.syntax == SyntaxPython:
		n, ok, v.closing = 1, yes, c
	case v.quote != nil:
		n, ok = v.quote.match(in, final)
		v.closing = 0
	}
	if ok == yes {
		v.out = append(v.out, '"')
		v.key, v.state = key, inString
	}
	return n, ok
}

func (v *value) beginKey(in []sym, final bool) (int, verdict) {
	c := byte(in[0])
	open := v.top()
	if (c == '}' && open == '{' || c == ')' && open == '(') && (!v.comma || v.syntax != SyntaxJSON) {
		v.comma = false
		return v.close()
	}
	if v.syntax == SyntaxBraces || open == '(' {
		if v.endsKey(c) {
			return 0, no
		}
		if v.quote != nil {
			if n, ok := v.quote.match(in, final); ok == maybe {
				return n, ok
			} else if ok == yes {
				v.writeComma()
				return v.beginString(in, final, true)
			}
		}
		v.writeComma()
		v.key, v.word, v.state = true, v.word[:0], inWord
		return 0, yes
	}
	if c != '"' && (c != '\'' || v.syntax != SyntaxPython) {
		return 0, no
	}
	v.writeComma()
	return v.beginString(in, final, true)
}

func (v *value) afterValue(c byte) (int, verdict) {
	switch {
	case c == ',' && len(v.stack) > 0:
		v.comma = true
		v.state = inValue
		if v.top() != '[' {
			v.state = inKey
		}
		return 1, yes
	case c == ']' && v.top() == '[', c == '}' && v.top() == '{', c == ')' && v.top() == '(':
		return v.close()
	}
	return 0, no
}

func (v *value) close() (int, verdict) {
	end := byte('}')
	if v.top() == '[' {
		end = ']'
	}
	v.out = append(v.out, end)
	v.stack = v.stack[:len(v.stack)-1]
	v.state = inNext
	return 1, yes
}

func (v *value) writeComma() {
	if v.comma {
		v.out = append(v.out, ',')
		v.comma = false
	}
}

func endsWord(c byte) bool { return bytes.IndexByte([]byte(" \n\t\r,]}):<\"'"), c) >= 0 }

func (v *value) endsKey(c byte) bool {
	return c == v.colon() || bytes.IndexByte([]byte(" \n\t\r,{}[]()\"'"), c) >= 0
}

func (v *value) endWord() bool {
	if v.key {
		if len(v.word) == 0 {
			return false
		}
		v.out = appendString(v.out, v.word)
		v.state = inColon
		return true
	}
	word := constant(v.word, v.syntax != SyntaxJSON)
	if word == nil {
		return false
	}
	v.out = append(v.out, word...)
	v.state = inNext
	return true
}

// constant returns the JSON of a number or a constant, or nil. If python is set, it accepts True,
// False and None.
func constant(word []byte, python bool) []byte {
	switch string(word) {
	case "true", "false", "null":
		return word
	}
	if python {
		switch string(word) {
		case "True":
			return []byte("true")
		case "False":
			return []byte("false")
		case "None":
			return []byte("null")
		}
	}
	if len(word) > 0 && (word[0] == '-' || word[0] >= '0' && word[0] <= '9') && json.Valid(word) {
		return word
	}
	return nil
}

func (v *value) inString(in []sym, final bool) (int, verdict) {
	c := byte(in[0])
	if v.closing == 0 {
		n, ok := v.quote.match(in, final)
		switch ok {
		case yes:
			v.endString()
			return n, yes
		case maybe:
			return 0, maybe
		}
		v.out = appendByte(v.out, c)
		return 1, yes
	}
	if len(v.escape) > 0 {
		v.escape = append(v.escape, c)
		v.endEscape()
		return 1, yes
	}
	switch c {
	case '\\':
		v.escape = append(v.escape[:0], c)
	case v.closing:
		v.endString()
	default:
		v.out = appendByte(v.out, c)
	}
	return 1, yes
}

func (v *value) endString() {
	v.out = append(v.out, '"')
	v.state = inNext
	if v.key {
		v.state = inColon
	}
}

// endEscape writes the escape if it is complete. An invalid escape stands for its own characters.
func (v *value) endEscape() {
	e := v.escape
	digits := 0
	switch e[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		v.out = append(v.out, e...)
		v.escape = e[:0]
		return
	case 'u':
		digits = 4
	case 'x':
		digits = 2
	case 'U':
		digits = 8
	}
	if v.syntax == SyntaxJSON && e[1] != 'u' {
		digits = 0
	}
	if digits > 0 && isHex(e[2:]) {
		if len(e) < 2+digits {
			return
		}
		n, _ := strconv.ParseUint(string(e[2:]), 16, 32)
		if n > 0xffff {
			r := rune(utf8.RuneError)
			if n <= utf8.MaxRune {
				r = rune(n)
			}
			v.out = utf8.AppendRune(v.out, r)
		} else {
			v.out = fmt.Appendf(v.out, `\u%04x`, n)
		}
		v.escape = e[:0]
		return
	}
	v.escape = e[:0]
	if v.syntax == SyntaxPython && len(e) == 2 {
		switch e[1] {
		case '\'':
			v.out = append(v.out, '\'')
			return
		case '\n':
			return
		case '0':
			v.out = append(v.out, `\u0000`...)
			return
		case 'a':
			v.out = append(v.out, `\u0007`...)
			return
		case 'v':
			v.out = append(v.out, `\u000b`...)
			return
		}
	}
	last := e[len(e)-1]
	for _, c := range e[:len(e)-1] {
		v.out = appendByte(v.out, c)
	}
	switch last { // read it again: it may end the string or begin an escape
	case '\\':
		v.escape = append(v.escape, last)
	case v.closing:
		v.endString()
	default:
		v.out = appendByte(v.out, last)
	}
}

func isHex(text []byte) bool {
	for _, c := range text {
		if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0 {
			return false
		}
	}
	return true
}

// appendByte appends a byte of the inside of a JSON string.
func appendByte(out []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(out, '\\', c)
	case c == '\n':
		return append(out, '\\', 'n')
	case c == '\t':
		return append(out, '\\', 't')
	case c == '\r':
		return append(out, '\\', 'r')
	case c < 0x20:
		return fmt.Appendf(out, `\u%04x`, c)
	}
	return append(out, c)
}

// appendString appends a JSON string.
func appendString(out, text []byte) []byte {
	out = append(out, '"')
	for _, c := range text {
		out = appendByte(out, c)
	}
	return append(out, '"')
}
