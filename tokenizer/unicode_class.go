package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of the character properties that the patterns of pre-tokenizers test. The general
// categories are those of Unicode 16.0, as in Hugging Face tokenizers, or others (see
// [classTable]).
type class uint8

const (
	upper  class = 1 << iota // Lu, Lt
	lower                    // Ll
	letter                   // Lm, Lo: letters without case
	mark                     // M
	number                   // N
	punct                    // P
	symbol                   // S
	space                    // White_Space

	anyLetter = upper | lower | letter // L
)

// properties holds the class of every code point.
type properties [unicode.MaxRune + 1]class

// at returns the class and the length in bytes of the character at i in text. An invalid byte has
// the class of U+FFFD.
func (p *properties) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return p[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return p[r], n
}

// classTable returns the properties that some tokenizers use. It builds them on first use.
type classTable func() *properties

// matcher returns a matcher for which characters have the properties of c.
func (c classTable) matcher(match func(p *properties, w *work, text string, i int) int) matcher {
	return func(w *work, text string, i int) int { return match(c(), w, text, i) }
}

// of returns a test for characters of any class in wanted.
func (c classTable) of(wanted class) func(r rune) bool {
	return func(r rune) bool { return c()[r]&wanted != 0 }
}

// unicode15 returns a new table of the classes in Unicode 15.0, the version of package unicode.
func unicode15() *properties {
	table := new(properties)
	add := func(c class, ranges *unicode.RangeTable) {
		for _, r := range ranges.R16 {
			for p := uint32(r.Lo); p <= uint32(r.Hi); p += uint32(r.Stride) {
				table[p] |= c
			}
		}
		for _, r := range ranges.R32 {
			for p := r.Lo; p <= r.Hi; p += r.Stride {
				table[p] |= c
			}
		}
	}
	add(upper, unicode.Lu)
	add(upper, unicode.Lt)
	add(lower, unicode.Ll)
	add(letter, unicode.Lm)
	add(letter, unicode.Lo)
	add(mark, unicode.M)
	add(number, unicode.N)
	add(punct, unicode.P)
	add(symbol, unicode.S)
	add(space, unicode.White_Space)
	return table
}

// classes are the classes in Unicode 16.0.
var classes classTable = sync.OnceValue(func() *properties {
	table := unicode15()
	for _, r := range newInUnicode16 {
		for p := r.first; p <= r.last; p++ {
			table[p] = r.class
		}
	}
	return table
})

// isSpace reports whether r has the property White_Space.
func isSpace(r rune) bool { return classes()[r]&space != 0 }

// isWord reports whether r is a word character as in UTS #18, annex C: alphabetic, a mark, a decimal
// digit, connector punctuation or a joining control.
func isWord(r rune) bool {
	return classes()[r]&(anyLetter|mark) != 0 || r == 0x200C || r == 0x200D ||
		unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic) || newDigit(r)
}

// newDigit reports whether r is a decimal digit that came with Unicode 15.1 or 16.0.
func newDigit(r rune) bool {
	for _, d := range newInUnicode16 {
		if d.class == number && d.first <= r && r <= d.last {
			return true
		}
	}
	return false
}
