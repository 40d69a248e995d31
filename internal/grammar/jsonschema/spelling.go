package jsonschema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/rx"
)

// A spelling is a way to write texts inside the quotes of a JSON string. It maps every text to one
// or more byte strings, which belong to no other text. So the sets of spellings form a Boolean
// algebra like the sets of texts, with complements relative to all.
type spelling struct {
	space *rx.Space
	plain bool    // each text has one spelling
	char  rx.Expr // any one code point
	all   rx.Expr // any text
	memo  map[rx.RuneRange]rx.Expr
}

func newSpelling(space *rx.Space, plain bool) *spelling {
	s := &spelling{space: space, plain: plain, memo: map[rx.RuneRange]rx.Expr{}}
	s.char = s.runes([]rx.RuneRange{{Lo: 0, Hi: utf8.MaxRune}})
	s.all = space.Repeat(s.char, 0, -1)
	return s
}

var shortNames = map[rune]byte{'"': '"', '\\': '\\', '/': '/', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// runes returns the spellings of one code point in the ranges.
func (s *spelling) runes(ranges []rx.RuneRange) rx.Expr {
	var all []rx.Expr
	for _, r := range ranges {
		for _, part := range []rx.RuneRange{{Lo: r.Lo, Hi: min(r.Hi, 0xd7ff)}, {Lo: max(r.Lo, 0xe000), Hi: r.Hi}} {
			if part.Lo <= part.Hi {
				all = append(all, s.run(part))
			}
		}
	}
	return s.space.Or(all...)
}

// run returns the spellings of the code points of r, which contains no surrogates.
func (s *spelling) run(r rx.RuneRange) rx.Expr {
	if e, ok := s.memo[r]; ok {
		return e
	}
	var all []rx.Expr
	for _, raw := range []rx.RuneRange{{Lo: 0x20, Hi: '!'}, {Lo: '#', Hi: '['}, {Lo: ']', Hi: utf8.MaxRune}} {
		if raw.Lo, raw.Hi = max(raw.Lo, r.Lo), min(raw.Hi, r.Hi); raw.Lo <= raw.Hi {
			all = append(all, s.space.Runes(raw))
		}
	}
	for c, name := range shortNames {
		if r.Lo <= c && c <= r.Hi && (!s.plain || c != '/') {
			all = append(all, s.space.Literal(`\`+string(name)))
		}
	}
	if s.plain {
		for c := r.Lo; c <= min(r.Hi, 0x1f); c++ {
			if shortNames[c] == 0 {
				all = append(all, s.space.Literal(fmt.Sprintf(`\u%04x`, c)))
			}
		}
	} else {
		all = append(all, s.units(r))
	}
	e := s.space.Or(all...)
	s.memo[r] = e
	return e
}

// units returns the \u spellings of the code points of r.
func (s *spelling) units(r rx.RuneRange) rx.Expr {
	var all []rx.Expr
	if r.Lo <= 0xffff {
		all = append(all, s.unit(r.Lo, min(r.Hi, 0xffff)))
	}
	for lo := max(r.Lo, 0x10000); lo <= r.Hi; {
		// A run within one high surrogate, or over as many whole high surrogates as possible.
		block := (lo - 0x10000) / 0x400
		last := block
		hi := min(r.Hi, 0x10000+block*0x400+0x3ff)
		if lo == 0x10000+block*0x400 {
			if whole := (r.Hi + 1 - 0x10000) / 0x400; whole > block {
				last, hi = whole-1, 0x10000+whole*0x400-1
			}
		}
		low := (lo - 0x10000) % 0x400
		high := (hi - 0x10000) % 0x400
		all = append(all, s.space.Concat(s.unit(0xd800+block, 0xd800+last), s.unit(0xdc00+low, 0xdc00+high)))
		lo = hi + 1
	}
	return s.space.Or(all...)
}

// unit returns \uXXXX for the code units from lo to hi.
func (s *spelling) unit(lo, hi rune) rx.Expr {
	return s.space.Concat(s.space.Literal(`\u`), s.hex(lo, hi, 4))
}

// hex returns the numbers from lo to hi with this many hexadecimal digits.
func (s *spelling) hex(lo, hi rune, digits int) rx.Expr {
	if digits == 1 {
		return s.space.Bytes(rx.BytesOf([]byte("0123456789abcdef"[lo:hi+1] + "0123456789ABCDEF"[lo:hi+1])...))
	}
	step := rune(1) << (4 * (digits - 1))
	var all []rx.Expr
	for first := lo / step; first <= hi/step; {
		last, a, b := first, max(lo, first*step)%step, min(hi, first*step+step-1)%step
		if a == 0 && b == step-1 {
			for last < hi/step && (last+2)*step-1 <= hi {
				last++
			}
		}
		all = append(all, s.space.Concat(s.hex(first, last, 1), s.hex(a, b, digits-1)))
		first = last + 1
	}
	return s.space.Or(all...)
}

// text returns the spellings of one text.
func (s *spelling) text(text string) rx.Expr {
	if s.plain {
		return s.space.Literal(plainText(text))
	}
	var parts []rx.Expr
	for _, c := range text {
		parts = append(parts, s.run(rx.RuneRange{Lo: c, Hi: c}))
	}
	return s.space.Concat(parts...)
}

// not returns the spellings of all texts that are not in e.
func (s *spelling) not(e rx.Expr) rx.Expr { return s.space.And(s.all, s.space.Not(e)) }

// has reports whether e, a set of spellings, contains those of text.
func (s *spelling) has(e rx.Expr, text string) bool {
	plain := plainText(text)
	for i := 0; i < len(plain); i++ {
		if e = s.space.Derive(e, plain[i]); e == rx.Nothing {
			return false
		}
	}
	return s.space.Nullable(e)
}

// plainText returns the spelling of a text under PlainSpelling, without quotes: the shortest, with
// lower-case hexadecimal digits. AnySpelling also has it.
func plainText(text string) string {
	if strings.IndexFunc(text, func(c rune) bool { return c < 0x20 || c == '"' || c == '\\' }) < 0 {
		return text
	}
	var out strings.Builder
	for _, c := range text {
		switch {
		case c != '/' && shortNames[c] != 0:
			out.WriteByte('\\')
			out.WriteByte(shortNames[c])
		case c < 0x20:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// quoted returns e with quotes around it.
func (s *spelling) quoted(e rx.Expr) rx.Expr {
	quote := s.space.Literal(`"`)
	return s.space.Concat(quote, e, quote)
}
