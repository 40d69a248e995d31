package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of properties of a character, those that the patterns of pre-tokenizers ask for.
// The general categories are Unicode 16.0's, which Hugging Face tokenizers use.
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

// classes returns the class of every code point.
var classes = sync.OnceValue(func() *[unicode.MaxRune + 1]class {
	table := new([unicode.MaxRune + 1]class)
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
	for _, r := range newInUnicode16 {
		for p := r.first; p <= r.last; p++ {
			table[p] = r.class
		}
	}
	return table
})

// classAt returns the class and the length in bytes of the character at i of text. A byte that
// belongs to no character has the class of U+FFFD.
func classAt(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return classes()[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classes()[r], n
}

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
