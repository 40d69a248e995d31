package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// llama.cpp uses Unicode 15.1. Expressions without a hand-written function run over a text in which
// one byte stands for the category of each character; letters beyond ASCII have no case there. The
// tables in this file give characters the same classes.

// llamaClasses holds the classes as llama.cpp defines them.
var llamaClasses classTable = sync.OnceValue(func() *properties {
	table := unicode15()
	for _, added := range newInUnicode16 {
		if inUnicode15_1(added.first) {
			for r := added.first; r <= added.last; r++ {
				table[r] = added.class
			}
		}
	}
	return table
})

// inUnicode15_1 reports whether a character of newInUnicode16 was in Unicode 15.1.
func inUnicode15_1(r rune) bool {
	return 0x2FFC <= r && r <= 0x2FFF || r == 0x31EF || 0x2EBF0 <= r && r <= 0x2EE5D
}

// llamaCaseless is llamaClasses with case in ASCII only.
var llamaCaseless classTable = sync.OnceValue(func() *properties {
	table := new(properties)
	for r, c := range llamaClasses() {
		if r >= utf8.RuneSelf && c&anyLetter != 0 {
			c = letter
		}
		table[r] = c
	}
	return table
})

// llamaUnmarked is llamaCaseless with marks in no class.
var llamaUnmarked classTable = sync.OnceValue(func() *properties {
	table := new(properties)
	for r, c := range llamaCaseless() {
		table[r] = c &^ mark
	}
	return table
})

// llamaTilde is llamaClasses with the tilde in no class, as in the expressions with \p{S}.
var llamaTilde classTable = sync.OnceValue(func() *properties {
	table := *llamaClasses()
	table['~'] &^= symbol
	return &table
})

// llamaHan is llamaUnmarked with Chinese characters as the only upper-case letters: letters that
// are in no word.
var llamaHan classTable = sync.OnceValue(func() *properties {
	table := new(properties)
	for r, c := range llamaUnmarked() {
		if c&anyLetter != 0 {
			c = letter
			if isHanBlock(rune(r)) {
				c = upper
			}
		}
		table[r] = c
	}
	return table
})

// isHanBlock reports whether r is in a block of ideographs, assigned or not, as llama.cpp lists them.
func isHanBlock(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0xF900 <= r && r <= 0xFAFF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2EBEF || 0x2F800 <= r && r <= 0x2FA1F
}

// wpmText normalizes text as llama.cpp does for BERT. It puts a space on both sides of a character
// that is a word on its own.
type wpmText struct{ lower, strip bool }

func (w wpmText) append(dst []byte, r rune, _ string) []byte {
	if w.strip {
		r = firstOfNFD(r)
	}
	c := llamaClasses()[r]
	switch {
	case c&space != 0:
		return append(dst, ' ')
	case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return dst
	case w.strip && c&mark != 0:
		return dst
	}
	alone := c&punct != 0 || r < utf8.RuneSelf && c&symbol != 0 || isChinese(r)
	if w.lower {
		r = unicode.ToLower(r)
	}
	if !alone {
		return utf8.AppendRune(dst, r)
	}
	return append(utf8.AppendRune(append(dst, ' '), r), ' ')
}

// firstOfNFD returns the first character of r's canonical decomposition. llama.cpp drops the
// others.
func firstOfNFD(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	var buffer [utf8.UTFMax]byte
	d := norm.NFD.Properties(utf8.AppendRune(buffer[:0], r)).Decomposition()
	if len(d) == 0 {
		return firstOfSyllable(r)
	}
	r, _ = utf8.DecodeRune(d)
	return r
}

// firstOfSyllable returns the leading consonant of a Hangul syllable, and every other character
// unchanged.
func firstOfSyllable(r rune) rune {
	const first, last, consonant, following = 0xAC00, 0xD7A3, 0x1100, 21 * 28
	if r < first || r > last {
		return r
	}
	return consonant + (r-first)/following
}
