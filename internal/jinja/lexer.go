package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A tokenKind is what a token is. Operators are of kind tokOp.
type tokenKind byte

const (
	tokEOF tokenKind = iota
	tokData
	tokVariableBegin
	tokVariableEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInteger
	tokFloat
	tokOp
)

// A token is a piece of a template. Text is what the template says, except
// that the escapes of a string are resolved.
type token struct {
	kind  tokenKind
	text  string
	line  int
	value Value // of a number
}

// is reports whether t is the operator op.
func (t token) is(op string) bool { return t.kind == tokOp && t.text == op }

// isName reports whether t is one of the names.
func (t token) isName(names ...string) bool {
	if t.kind != tokName {
		return false
	}
	for _, n := range names {
		if t.text == n {
			return true
		}
	}
	return false
}

// describe names t in messages.
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data / text"
	case tokVariableBegin:
		return "begin of print statement"
	case tokVariableEnd:
		return "end of print statement"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokString:
		return "string"
	case tokInteger:
		return "integer"
	case tokFloat:
		return "float"
	}
	return clip(t.text)
}

// operators are sorted so that the longest match comes first.
var operators = []string{
	"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=",
	".", ":", "|", ",", ";",
}

// A lexer splits a template into tokens, with trim_blocks and lstrip_blocks
// on: a line end behind a tag goes, and so does the white space before a tag
// that begins a line.
type lexer struct {
	name   string
	src    string
	pos    int
	line   int
	tokens []token
	// lineStart says that what was read last ended with a line end, or
	// that nothing was read yet.
	lineStart bool
}

// tokenize returns the tokens of a template, the last of which is tokEOF.
func tokenize(name, source string) ([]token, error) {
	source = strings.ReplaceAll(source, "\r\n", "\n")
	source = strings.ReplaceAll(source, "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	l := &lexer{name: name, src: strings.ToValidUTF8(source, "\uFFFD"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEOF, "")
	return l.tokens, nil
}

func (l *lexer) fail(format string, args ...any) error {
	return &SyntaxError{Name: l.name, Line: l.line, Message: fmt.Sprintf(format, args...)}
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, line: l.line})
}

// advance moves over n bytes and counts their lines.
func (l *lexer) advance(n int) {
	text := l.src[l.pos : l.pos+n]
	l.line += strings.Count(text, "\n")
	l.pos += n
	if n > 0 {
		l.lineStart = text[n-1] == '\n'
	}
}

// spaces is the length of the white space at the start of s.
func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// root reads text up to the next tag, and that tag.
func (l *lexer) root() error {
	rest := l.src[l.pos:]
	at := -1
	for i := 0; ; {
		n := strings.IndexByte(rest[i:], '{')
		if n < 0 || i+n+1 >= len(rest) {
			break
		}
		i += n
		if strings.IndexByte("{%#", rest[i+1]) >= 0 {
			at = i
			break
		}
		i++
	}
	if at < 0 {
		l.emit(tokData, rest)
		l.advance(len(rest))
		return nil
	}
	opener := rest[at : at+2]
	sign := byte(0)
	if at+2 < len(rest) && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	l.data(rest[:at], sign, opener != "{{")
	l.advance(at)
	if opener == "{%" {
		if n := rawOpening(rest[at:]); n > 0 {
			l.advance(n)
			return l.raw()
		}
	}
	switch opener {
	case "{{":
		l.emit(tokVariableBegin, "")
	case "{%":
		l.emit(tokBlockBegin, "")
	}
	l.advance(2)
	if sign != 0 {
		l.advance(1)
	}
	switch opener {
	case "{#":
		return l.comment()
	case "{{":
		return l.tag("}}")
	}
	return l.tag("%}")
}

// data emits the text before a tag, without the white space that the tag or
// its place in the line takes away.
func (l *lexer) data(text string, sign byte, canStrip bool) {
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && canStrip:
		from := strings.LastIndexByte(text, '\n') + 1
		if (from > 0 || l.lineStart) && spaces(text[from:]) == len(text)-from {
			text = text[:from]
		}
	}
	if text != "" {
		l.emit(tokData, text)
	}
}

// rawOpening returns the length of a raw tag at the start of s, or 0.
func rawOpening(s string) int {
	i := 2
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	i += spaces(s[i:])
	if !strings.HasPrefix(s[i:], "raw") {
		return 0
	}
	i += len("raw")
	i += spaces(s[i:])
	switch {
	case strings.HasPrefix(s[i:], "-%}"):
		return i + 3 + spaces(s[i+3:])
	case strings.HasPrefix(s[i:], "%}"):
		return i + 2
	}
	return 0
}

// raw reads up to the endraw tag, which is not missed where nothing follows.
func (l *lexer) raw() error {
	rest := l.src[l.pos:]
	if rest == "" {
		return nil
	}
	for i := 0; ; i++ {
		n := strings.Index(rest[i:], "{%")
		if n < 0 {
			return l.fail("Missing end of raw directive")
		}
		i += n
		j := i + 2
		sign := byte(0)
		if j < len(rest) && (rest[j] == '-' || rest[j] == '+') {
			sign = rest[j]
			j++
		}
		j += spaces(rest[j:])
		if !strings.HasPrefix(rest[j:], "endraw") {
			continue
		}
		j += len("endraw")
		j += spaces(rest[j:])
		n = closing(rest[j:], "%}", true)
		if n == 0 {
			continue
		}
		l.data(rest[:i], sign, true)
		l.advance(j + n)
		return nil
	}
}

// closing returns the length of the end of a tag at the start of s, with the
// white space it takes away, or 0.
func closing(s, end string, trim bool) int {
	switch {
	case strings.HasPrefix(s, end):
		if trim && strings.HasPrefix(s[len(end):], "\n") {
			return len(end) + 1
		}
		return len(end)
	case strings.HasPrefix(s, "-"+end):
		n := 1 + len(end)
		return n + spaces(s[n:])
	case trim && strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	}
	return 0
}

// comment skips a comment, the end of which is not missed where nothing
// follows.
func (l *lexer) comment() error {
	rest := l.src[l.pos:]
	if rest == "" {
		return nil
	}
	at := strings.Index(rest, "#}")
	if at < 0 {
		return l.fail("Missing end of comment tag")
	}
	if at > 0 && (rest[at-1] == '-' || rest[at-1] == '+') {
		at--
	}
	l.advance(at)
	l.advance(closing(l.src[l.pos:], "#}", true))
	return nil
}

// tag reads the tokens of a tag up to its end. Within brackets the end does
// not count as one.
func (l *lexer) tag(end string) error {
	var open []byte
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if len(open) == 0 {
			if n := closing(rest, end, end == "%}"); n > 0 {
				kind := tokVariableEnd
				if end == "%}" {
					kind = tokBlockEnd
				}
				l.emit(kind, "")
				l.advance(n)
				return nil
			}
		}
		if n := spaces(rest); n > 0 {
			l.advance(n)
			continue
		}
		if c := rest[0]; c < utf8.RuneSelf && !isWord(rune(c)) && c != '"' && c != '\'' {
			op := operatorAt(rest)
			if op == "" {
				return l.fail("unexpected char %q at %d", c, l.pos)
			}
			switch op {
			case "{", "(", "[":
				open = append(open, map[string]byte{"{": '}', "(": ')', "[": ']'}[op])
			case "}", ")", "]":
				if len(open) == 0 {
					return l.fail("unexpected '%s'", op)
				}
				if want := open[len(open)-1]; want != op[0] {
					return l.fail("unexpected '%s', expected '%c'", op, want)
				}
				open = open[:len(open)-1]
			}
			l.emit(tokOp, op)
			l.advance(len(op))
			continue
		}
		if err := l.word(rest); err != nil {
			return err
		}
	}
	return nil
}

func operatorAt(s string) string {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

// word reads a number, a name or a string.
func (l *lexer) word(rest string) error {
	if rest[0] == '"' || rest[0] == '\'' {
		return l.str(rest)
	}
	if isDigitByte(rest[0]) {
		if l.pos == 0 || l.src[l.pos-1] != '.' {
			if n := floatLength(rest); n > 0 {
				f, _ := strconv.ParseFloat(rest[:n], 64) // infinite where it is too large
				l.tokens = append(l.tokens, token{tokFloat, rest[:n], l.line, Float{f, true}})
				l.advance(n)
				return nil
			}
		}
		return l.integer(rest)
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return !isIdentifierPart(r) && !isWord(r) })
	if n < 0 {
		n = len(rest)
	}
	if n == 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		return l.fail("unexpected char %q at %d", r, l.pos)
	}
	if !isIdentifier(rest[:n]) {
		return l.fail("Invalid character in identifier")
	}
	l.emit(tokName, rest[:n])
	l.advance(n)
	return nil
}

// digitsLength is the length of the digits at the start of s.
func digitsLength(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// floatLength is the length of a number with a point or an exponent at the
// start of s, or 0.
func floatLength(s string) int {
	n := digitsLength(s)
	isFloat := false
	if n < len(s) && s[n] == '.' {
		if d := digitsLength(s[n+1:]); d > 0 {
			n += 1 + d
			isFloat = true
		}
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		i := n + 1
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if d := digitsLength(s[i:]); d > 0 {
			return i + d
		}
	}
	if isFloat {
		return n
	}
	return 0
}

func (l *lexer) integer(rest string) error {
	digits := rest[:digitsLength(rest)]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] == '0' && n > 0 {
		return l.fail("invalid integer %s: it is decimal, without zeros before it, and of 64 bits", clip(digits))
	}
	l.tokens = append(l.tokens, token{tokInteger, digits, l.line, Int{small: n, tmpl: true}})
	l.advance(len(digits))
	return nil
}

// str reads a string and resolves its escapes.
func (l *lexer) str(rest string) error {
	end := 1
	for end < len(rest) && rest[end] != rest[0] {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(rest) {
		return l.fail("unexpected char %q at %d", rest[0], l.pos)
	}
	text, message := unescapeLiteral(rest[1:end])
	if message != "" {
		return l.fail("%s", message)
	}
	l.emit(tokString, text)
	l.advance(end + 1)
	return nil
}
