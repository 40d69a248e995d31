package gbnf

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
	"github.com/realizar/realizar/internal/rx/pattern"
)

// literal parses "text".
func (p *parser) literal() (*ebnf.Node, error) {
	at := p.pos
	p.pos++
	var text strings.Builder
	for {
		if !p.more() {
			return nil, p.errorf(at, `this literal has no end "`)
		}
		if p.accept(`"`) {
			return ebnf.Lexeme(p.s.Literal(text.String()), text.Len()), nil
		}
		begin := p.pos
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		if 0xD800 <= r && r < 0xE000 {
			return nil, p.errorf(begin, "the surrogate %04X is no character; write the character itself or \\U and eight digits", r)
		}
		text.WriteRune(r)
	}
}

// class parses [...] or [^...].
func (p *parser) class() (*ebnf.Node, error) {
	at := p.pos
	p.pos++
	negate := p.accept("^")
	var ranges []rx.RuneRange
	for !p.accept("]") {
		if !p.more() {
			return nil, p.errorf(at, "this [ has no ]")
		}
		begin := p.pos
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.ahead("-") && !p.ahead("-]") {
			p.pos++
			if !p.more() {
				return nil, p.errorf(at, "this [ has no ]")
			}
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if lo > hi {
			return nil, p.errorf(begin, "the range %c-%c goes backwards", lo, hi)
		}
		ranges = append(ranges, rx.RuneRange{Lo: lo, Hi: hi})
	}
	ranges = pattern.Union(ranges)
	if negate {
		ranges = pattern.Complement(ranges)
	}
	e := p.s.Runes(ranges...)
	if e == rx.Nothing && p.s.Err() == nil {
		return nil, p.errorf(at, "no character fits this class")
	}
	return ebnf.Lexeme(e, 1+len(ranges)), nil
}

// char parses a character or an escape.
func (p *parser) char() (rune, error) {
	at := p.pos
	r, n := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	if r != '\\' {
		return r, nil
	}
	if !p.more() {
		return 0, p.errorf(at, "the grammar ends with a backslash")
	}
	r, n = utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	switch r {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'x':
		return p.hex(at, 2)
	case 'u':
		return p.hex(at, 4)
	case 'U':
		return p.hex(at, 8)
	}
	if '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
		return 0, p.errorf(at, `the escape \%c is not known; \n, \r, \t, \xHH, \uHHHH and \UHHHHHHHH are, and \ before a character that is no letter or digit`, r)
	}
	return r, nil
}

func (p *parser) hex(at, digits int) (rune, error) {
	if len(p.text)-p.pos >= digits {
		v, err := strconv.ParseUint(p.text[p.pos:p.pos+digits], 16, 32)
		if err == nil && v <= utf8.MaxRune {
			p.pos += digits
			return rune(v), nil
		}
	}
	return 0, p.errorf(at, "this escape needs %d hexadecimal digits, of a code point up to 10FFFF", digits)
}
