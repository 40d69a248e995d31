package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// whitespace finds each white space character.
var whitespace = run(1, isSpace)

// isBertPunctuation reports whether r is of punctuation, for which all symbols of ASCII count.
func isBertPunctuation(r rune) bool {
	c := classes()[r]
	if r < utf8.RuneSelf {
		return c&(punct|symbol) != 0
	}
	return c&punct != 0 && unicode.Is(unicode9, r)
}

// matchWordOrSymbols matches \w+|[^\w\s]+.
func matchWordOrSymbols(text string, i int) int {
	r, n := utf8.DecodeRuneInString(text[i:])
	if isSpace(r) {
		return i
	}
	word := isWord(r)
	for i += n; i < len(text); i += n {
		r, n = utf8.DecodeRuneInString(text[i:])
		if isSpace(r) || isWord(r) != word {
			break
		}
	}
	return i
}

// fixedLength cuts into parts of so many characters.
type fixedLength int

func (f fixedLength) cut(piece string, first bool, yield func(string, bool)) {
	start, n := 0, fixedLength(0)
	for i := 0; i < len(piece); n++ {
		if n == f {
			yield(piece[start:i], first && start == 0)
			start, n = i, 0
		}
		_, size := utf8.DecodeRuneInString(piece[i:])
		i += size
	}
	yield(piece[start:], first && start == 0)
}

// before puts a text before each piece.
type before string

func (b before) cut(piece string, first bool, yield func(string, bool)) {
	yield(string(b)+piece, first)
}

// spelled writes the bytes of a piece as a byte-level vocabulary does.
type spelled struct{}

func (spelled) cut(piece string, first bool, yield func(string, bool)) {
	piece, _ = eachCharacter(spellBytes).apply(piece, nil)
	yield(piece, first)
}

// scriptSplit cuts where the script of the writing changes; Chinese characters and kana count as one. As in
// the original, what has no script is lost at the start of a piece.
type scriptSplit struct{}

// anyScript is the script of a space and of characters that came after Unicode 9.0: they go with what is
// before them.
const anyScript = 0

// scripts returns the number of the script of every code point.
var scripts = sync.OnceValue(func() *[unicode.MaxRune + 1]uint8 {
	table := new([unicode.MaxRune + 1]uint8)
	number := uint8(1) // of Han and kana
	for name, ranges := range unicode.Scripts {
		n := uint8(1)
		if name != "Han" && name != "Hiragana" && name != "Katakana" {
			number++
			n = number
		}
		for _, r := range ranges.R16 {
			for p := uint32(r.Lo); p <= uint32(r.Hi); p += uint32(r.Stride) {
				table[p] = n
			}
		}
		for _, r := range ranges.R32 {
			for p := r.Lo; p <= r.Hi; p += r.Stride {
				table[p] = n
			}
		}
	}
	for p := range table {
		if table[p] != anyScript && !unicode.Is(unicode9, rune(p)) {
			table[p] = anyScript
		}
	}
	table[' '] = anyScript
	table['ー'] = 1 // common to both kana
	return table
})

func (scriptSplit) cut(piece string, first bool, yield func(string, bool)) {
	table := scripts()
	start, last := 0, uint8(anyScript)
	for i, r := range piece {
		script := table[r]
		if script == anyScript || script == last {
			continue
		}
		if last != anyScript {
			yield(piece[start:i], first && start == 0)
		}
		start, last = i, script
	}
	if last != anyScript {
		yield(piece[start:], first && start == 0)
	}
}
