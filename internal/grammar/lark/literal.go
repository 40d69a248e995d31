package lark

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// string parses "text", "text"i or "a".."z".
func (p *parser) string() (*expr, error) {
	at := p.pos
	text, err := p.quoted()
	if err != nil {
		return nil, err
	}
	n := &expr{kind: kindString, at: at, text: text}
	if p.accept("i") {
		n.flags = "i"
	}
	back := p.pos
	p.space()
	if !p.accept("..") {
		p.pos = back
		return n, nil
	}
	p.space()
	if !p.ahead(`"`) {
		return nil, p.errorf(p.pos, `a range is written "a".."z"`)
	}
	end, err := p.quoted()
	if err != nil {
		return nil, err
	}
	lo, size := utf8.DecodeRuneInString(text)
	hi, size2 := utf8.DecodeRuneInString(end)
	if text == "" || end == "" || size != len(text) || size2 != len(end) || n.flags != "" {
		return nil, p.errorf(at, `a range is written "a".."z", of one character on each side`)
	}
	if lo > hi {
		return nil, p.errorf(at, "the range %c-%c goes backwards", lo, hi)
	}
	n.kind, n.lo, n.hi = kindRange, lo, hi
	return n, nil
}

var escapes = map[byte]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'b': '\b', '0': 0,
	'\\': '\\', '"': '"', '\'': '\'', '/': '/'}

// quoted parses "text".
func (p *parser) quoted() (string, error) {
	at := p.pos
	if p.ahead("'") {
		return "", p.errorf(at, `a string stands in double quotes, as in "text"`)
	}
	p.pos++
	var out strings.Builder
	for {
		if !p.more() || p.ahead("\n") {
			return "", p.errorf(at, `this string has no end "`)
		}
		begin := p.pos
		c := p.text[p.pos]
		p.pos++
		if c == '"' {
			return out.String(), nil
		}
		if c != '\\' {
			out.WriteByte(c)
			continue
		}
		if !p.more() {
			return "", p.errorf(at, `this string has no end "`)
		}
		c = p.text[p.pos]
		p.pos++
		if r, ok := escapes[c]; ok {
			out.WriteRune(r)
			continue
		}
		digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if !ok {
			return "", p.errorf(begin, `the escape \%c is not known; a backslash of the text is written \\`, c)
		}
		if len(p.text)-p.pos < digits {
			return "", p.errorf(begin, "this escape needs %d hexadecimal digits", digits)
		}
		v, err := strconv.ParseUint(p.text[p.pos:p.pos+digits], 16, 32)
		if err != nil || !utf8.ValidRune(rune(v)) {
			return "", p.errorf(begin, "this escape needs %d hexadecimal digits, of a character", digits)
		}
		p.pos += digits
		out.WriteRune(rune(v))
	}
}

// regex parses /text/flags.
func (p *parser) regex() (*expr, error) {
	at := p.pos
	p.pos++
	begin := p.pos
	for !p.ahead("/") {
		if p.ahead(`\`) {
			p.pos++
		}
		if !p.more() || p.ahead("\n") {
			return nil, p.errorf(at, "this regular expression has no end /")
		}
		p.pos++
	}
	n := &expr{kind: kindRegex, at: at, text: p.text[begin:p.pos]}
	p.pos++
	begin = p.pos
	for p.more() && strings.IndexByte("imslux", p.text[p.pos]) >= 0 {
		p.pos++
	}
	n.flags = p.text[begin:p.pos]
	if strings.Contains(n.flags, "l") {
		return nil, p.errorf(begin, "the flag l (letters of a locale) is not supported")
	}
	n.flags = strings.ReplaceAll(n.flags, "u", "")
	return n, nil
}

// token parses <text>, <[1,5-7]>, <[^1]> or <[*]>.
func (p *parser) token() (*expr, error) {
	at := p.pos
	end := strings.IndexAny(p.text[at:], ">\n")
	if end < 2 || p.text[at+end] != '>' {
		return nil, p.errorf(at, "a token is written <text> or <[123]>")
	}
	p.pos = at + end + 1
	text := p.text[at:p.pos]
	if !strings.HasPrefix(text, "<[") || !strings.HasSuffix(text, "]>") {
		return &expr{kind: kindSpecial, at: at, text: text}, nil
	}
	n := &expr{kind: kindTokens, at: at}
	inner := text[2 : len(text)-2]
	if inner == "*" {
		n.negate = true
		return n, nil
	}
	inner, n.negate = strings.CutPrefix(inner, "^")
	for part := range strings.SplitSeq(inner, ",") {
		first, last, found := strings.Cut(part, "-")
		if !found {
			last = first
		}
		lo, err := strconv.ParseUint(strings.TrimSpace(first), 10, 31)
		hi, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 31)
		if err != nil || err2 != nil || lo > hi {
			return nil, p.errorf(at, "%s does not name tokens; write <[123]>, <[1,5-7]>, <[^123]> or <[*]>", text)
		}
		if hi-lo >= maxTokens || len(n.ids)+int(hi-lo) >= maxTokens {
			return nil, p.errorf(at, "%s names more than %d tokens", text, maxTokens)
		}
		for id := lo; id <= hi; id++ {
			n.ids = append(n.ids, int32(id))
		}
	}
	return n, nil
}
