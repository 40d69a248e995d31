package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// whitespace finds each white space character.
var whitespace = run(1, isSpace)

// matchWordOrSymbols matches \w+|[^\w\s]+.
func matchWordOrSymbols(w *work, text string, i int) int {
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
		w.step(n)
	}
	return i
}

// fixedLength splits text into parts of so many characters.
type fixedLength int

func (f fixedLength) cut(w *work, piece string, first bool, yield func(string, bool)) {
	start, n := 0, fixedLength(0)
	for i := 0; i < len(piece); n++ {
		if n == f {
			yield(piece[start:i], first && start == 0)
			start, n = i, 0
		}
		_, size := utf8.DecodeRuneInString(piece[i:])
		i += size
		w.step(size)
	}
	yield(piece[start:], first && start == 0)
}

// before prepends a string to each piece.
type before string

func (b before) cut(w *work, piece string, first bool, yield func(string, bool)) {
	yield(string(b)+piece, first)
}

// spelled spells the bytes of a piece as a byte-level vocabulary does.
type spelled struct{}

func (spelled) cut(w *work, piece string, first bool, yield func(string, bool)) {
	piece, _ = eachCharacter(spellBytes).apply(w, piece, nil)
	yield(piece, first)
}

// scriptSplit splits where the script changes. Chinese characters and kana count as one script. As
// in the original, characters without a script are dropped at the start of a piece.
type scriptSplit struct{}

// anyScript is the script of a space and of characters that are newer than Unicode 9.0. They join
// the preceding text.
const anyScript = 0

// scripts returns the number of the script of every code point.
var scripts = sync.OnceValue(func() *[unicode.MaxRune + 1]uint8 {
	table := new([unicode.MaxRune + 1]uint8)
	number := map[string]uint8{"Han": 1, "Hiragana": 1, "Katakana": 1}
	next := uint8(1)
	for name, ranges := range unicode.Scripts {
		if number[name] == 0 {
			next++
			number[name] = next
		}
		rangetable.Visit(ranges, func(r rune) { table[r] = number[name] })
	}
	for r := range table {
		if table[r] != anyScript && !unicode.Is(unicode9, rune(r)) {
			table[r] = anyScript
		}
	}
	for r, name := range oldScripts {
		table[r] = number[name]
	}
	table[' '] = anyScript
	table['ー'] = 1 // common to both kana
	return table
})

func (scriptSplit) cut(w *work, piece string, first bool, yield func(string, bool)) {
	table := scripts()
	start, last := 0, uint8(anyScript)
	for i, r := range piece {
		w.step(1)
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
