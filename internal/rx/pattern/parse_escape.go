package pattern

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape parses the escape after the backslash at offset at, outside a class.
func (p *parser) escape(at int) (*node, error) {
	if !p.more() {
		return nil, p.errorf(at, `the pattern ends with a backslash; a backslash of the text is written \\`)
	}
	c := p.text[p.pos]
	switch {
	case c == 'b' || c == 'B':
		p.pos++
		if p.ahead("{") && p.o.Dialect == Common {
			return nil, p.errorf(at, `\%c{...} is not supported; \%c is`, c, c)
		}
		return p.wordBoundary(at, c == 'B'), nil
	case c == 'A' && p.o.Dialect == Common:
		p.pos++
		return textStart(at), nil
	case (c == 'z' || c == 'Z') && p.o.Dialect == Common:
		p.pos++
		return textEnd(at), nil
	case '1' <= c && c <= '9':
		return nil, p.errorf(at, `a back reference \%c is not regular and not supported; write what the group may match again`, c)
	case c == 'k':
		return nil, p.errorf(at, `a back reference \k<name> is not regular and not supported; write what the group may match again`)
	}
	r, s, err := p.escaped(at)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return setNode(at, s), nil
	}
	return p.character(at, r), nil
}

func (p *parser) wordBoundary(at int, negate bool) *node {
	w := p.perl('w')
	if p.flags.fold {
		w = w.fold()
	}
	word, other := side{set: w}, side{set: w}.not()
	if negate {
		return hereNode(at, pair{word, word}, pair{other, other})
	}
	return hereNode(at, pair{word, other}, pair{other, word})
}

var controls = map[byte]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v'}

// escaped parses the escape after a backslash, inside or outside a class. It returns a non-nil set,
// which may be empty, or one character that is not case folded yet.
func (p *parser) escaped(at int) (rune, set, error) {
	if !p.more() {
		return 0, nil, p.errorf(at, `the pattern ends with a backslash; a backslash of the text is written \\`)
	}
	ecma := p.o.Dialect == ECMA
	r := p.next()
	if r >= utf8.RuneSelf {
		return r, nil, nil
	}
	c := byte(r)
	if v, ok := controls[c]; ok {
		return v, nil, nil
	}
	switch c {
	case 'd', 'w', 's':
		return 0, p.solid(p.folded(p.perl(c))), nil
	case 'D', 'W', 'S':
		return 0, p.solid(p.folded(p.perl(c + 'a' - 'A')).not()), nil
	case 'p', 'P':
		s, err := p.property(at, c == 'P')
		return 0, s, err
	case 'x':
		r, err := p.hex(at, 2, !ecma)
		return r, nil, err
	case 'u':
		r, err := p.unicodeEscape(at)
		return r, nil, err
	case 'U':
		if !ecma {
			r, err := p.hex(at, 8, true)
			return r, nil, err
		}
	case 'c':
		if ecma && p.more() {
			if l := p.text[p.pos] | 0x20; 'a' <= l && l <= 'z' {
				p.pos++
				return rune(l & 0x1F), nil, nil
			}
		}
		if ecma {
			return 0, nil, p.errorf(at, `\c needs a letter behind it, as in \cJ`)
		}
	case 'a':
		if !ecma {
			return '\a', nil, nil
		}
	case '0':
		return p.octal(at)
	}
	if '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
		return 0, nil, p.errorf(at, `the escape \%c is not known%s`, c, p.hint(c))
	}
	return r, nil, nil
}

// hint says what to write instead of an escape that other dialects have.
func (p *parser) hint(c byte) string {
	switch c {
	case 'A', 'z', 'Z':
		return "; write ^ for the beginning of the text and $ for its end"
	case 'h':
		return `; write [ \t]`
	case 'R':
		return `; write (?:\r\n|\n|\r)`
	case 'Q', 'E':
		return "; put a backslash before each special character instead"
	case 'N', 'X', 'G', 'K', 'C':
		return " in this dialect"
	}
	return "; a letter of the text stands without a backslash"
}

// solid returns s, or an empty non-nil set if s is nil.
func (p *parser) solid(s set) set {
	if s == nil {
		return set{}
	}
	return s
}

// octal parses the digits after \0.
func (p *parser) octal(at int) (rune, set, error) {
	v := rune(0)
	for i := 0; i < 2 && p.more() && '0' <= p.text[p.pos] && p.text[p.pos] <= '9'; i++ {
		if p.o.Dialect == ECMA || p.text[p.pos] > '7' {
			return 0, nil, p.errorf(at, `a digit follows \0; write \x00 or the code as \xHH`)
		}
		v = v*8 + rune(p.text[p.pos]-'0')
		p.pos++
	}
	return v, nil, nil
}

// property parses {name} or a letter, after \p or \P.
func (p *parser) property(at int, negate bool) (set, error) {
	var name string
	if p.accept("{") {
		end := strings.IndexByte(p.text[p.pos:], '}')
		if end < 0 {
			return nil, p.errorf(at, `this \p{ has no end }`)
		}
		name = p.text[p.pos : p.pos+end]
		p.pos += end + 1
	} else if p.o.Dialect == Common && p.more() {
		name = string(p.next())
	} else {
		return nil, p.errorf(at, `\p needs a property behind it, as in \p{Letter}`)
	}
	if strings.HasPrefix(name, "^") {
		name, negate = name[1:], !negate
	}
	s, ok := property(name)
	if !ok {
		return nil, p.errorf(at, `the Unicode property %s is not known; general categories (\p{Lu}), scripts (\p{Script=Greek}) and binary properties such as \p{Alphabetic} are`, clip(name))
	}
	switch {
	case negate && p.o.Dialect == ECMA: // the order matters if case is folded
		s = p.folded(s.not())
	case negate:
		s = p.folded(s).not()
	default:
		s = p.folded(s)
	}
	return p.solid(s), nil
}

// unicodeEscape parses HHHH or {H...} after \u. In ECMA a surrogate pair is one character.
func (p *parser) unicodeEscape(at int) (rune, error) {
	r, err := p.hex(at, 4, true)
	if err != nil {
		return 0, err
	}
	if 0xD800 <= r && r < 0xDC00 && p.o.Dialect == ECMA && p.ahead(`\u`) {
		back := p.pos
		p.pos += 2
		if low, err := p.hex(at, 4, false); err == nil && 0xDC00 <= low && low < 0xE000 {
			return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), nil
		}
		p.pos = back
	}
	if 0xD800 <= r && r < 0xE000 && p.o.Dialect == Common {
		return 0, p.errorf(at, `the surrogate %04X is no character; write the character itself or \U%s`, r, "HHHHHHHH")
	}
	return r, nil
}

// hex parses a given number of hexadecimal digits, or if braces is set, also {H...}.
func (p *parser) hex(at, digits int, braces bool) (rune, error) {
	if braces && p.accept("{") {
		end := strings.IndexByte(p.text[p.pos:], '}')
		if end > 0 {
			v, err := strconv.ParseUint(p.text[p.pos:p.pos+end], 16, 32)
			if err == nil && v <= utf8.MaxRune {
				p.pos += end + 1
				return rune(v), nil
			}
		}
		return 0, p.errorf(at, "the braces hold no code point; write up to six hexadecimal digits, at most 10FFFF")
	}
	if len(p.text)-p.pos >= digits {
		v, err := strconv.ParseUint(p.text[p.pos:p.pos+digits], 16, 32)
		if err == nil && v <= utf8.MaxRune {
			p.pos += digits
			return rune(v), nil
		}
	}
	return 0, p.errorf(at, `this escape needs %d hexadecimal digits, of a code point up to 10FFFF`, digits)
}
