package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// notPunctuation is the expression of BLOOM and its relatives.
const notPunctuation = ` ?[^(\s|.,!?…。，、।۔،)]+`

// afmoeEastAsian are the characters of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese. As
// in llama.cpp it has all characters between U+8C48, a form of the first compatibility ideograph,
// and the last one, and lacks the first half of Thai.
const afmoeEastAsian = "\u3400-\u4DBF\u4E00-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF" +
	"\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\u1100-\u11FF"

// ggufSet is inSet for llama.cpp, whose expressions see all white space beyond ASCII as a vertical
// tab.
func ggufSet(set string) func(r rune) bool {
	in := inSet(set)
	return func(r rune) bool { return in(r) && (r < utf8.RuneSelf || !isSpace(r)) }
}

// youtuEastAsian matches a run of Hangul, of punctuation, of Bopomofo, or of Chinese characters and kana.
var youtuEastAsian = either(
	run(0, inSet("\uAC00-\uD7A3\u3131-\u318E")),
	run(0, inSet("\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B\uFF0C\u3001-\u303F\uFE30-\uFE4F")),
	run(0, inSet("\u3105-\u312F")),
	run(0, inSet(deepSeek3EastAsian)),
)

// matchLines matches [^\n]+|\n+.
func matchLines(_ *work, text string, i int) int {
	if text[i] != '\n' {
		if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(text)
	}
	return i + len(text[i:]) - len(strings.TrimLeft(text[i:], "\n"))
}

// kimi is the pattern of Kimi K2 without Chinese characters.
var kimi = words{cased: true, suffixes: true, longS: true, digits: 3, tail: "\r\n"}.matcher(classes)

// matchKimi matches a run of Chinese characters, or as o200k does without any.
func matchKimi(w *work, text string, i int) int {
	isHan := func(r rune) bool { return r >= 0x2E80 && unicode.Is(unicode.Han, r) }
	if end := run(0, isHan)(w, text, i); end > i {
		return end
	}
	// A word consists of the letters and marks from here or from the next character on. It ends
	// before the first Chinese character.
	_, size := utf8.DecodeRuneInString(text[i:])
	for at := i + size; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])
		if isHan(r) {
			if c, _ := classes().at(text, i); c&space != 0 && at == i+size {
				return classes().matchSpace(w, text, i, true)
			}
			return kimi(w, text[:at], i)
		}
		if classes()[r]&(anyLetter|mark) == 0 {
			break
		}
		at += n
	}
	return kimi(w, text, i)
}

// blank reports whether text is white space.
func blank(text string) bool { return strings.TrimLeftFunc(text, isSpace) == "" }

// digitGroups splits numbers into groups of three digits from the right. As in llama.cpp, the text
// before a number joins its first group.
type digitGroups struct{}

func (digitGroups) cut(w *work, piece string, first bool, yield func(string, bool)) {
	start := 0
	isDigit := llamaClasses.of(number)
	for i := 0; i < len(piece); {
		end := run(0, isDigit)(w, piece, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(piece[i:])
			i += n
			w.step(n)
			continue
		}
		size := utf8.RuneCountInString(piece[i:end]) % 3
		if size == 0 {
			size = 3
		}
		for i < end {
			i, size = run(size, isDigit)(w, piece, i), 3
			yield(piece[start:i], first && start == 0)
			start = i
		}
	}
	if start < len(piece) {
		yield(piece[start:], first && start == 0)
	}
}

// threesFromRight splits before every ASCII digit from which the number has a multiple of three
// digits, like (?=(\d{3})+(?!\d)).
type threesFromRight struct{}

func (threesFromRight) cut(w *work, piece string, first bool, yield func(string, bool)) {
	start := 0
	for i := 0; i < len(piece); {
		end := i
		for end < len(piece) && '0' <= piece[end] && piece[end] <= '9' {
			end++
			w.step(1)
		}
		w.step(1)
		for at := i + (end-i)%3; at < end; at += 3 {
			if at > start {
				yield(piece[start:at], first && start == 0)
				start = at
			}
		}
		i = end + 1
	}
	if start < len(piece) {
		yield(piece[start:], first && start == 0)
	}
}

// shortSpaces splits at the matches of a pattern. It splits white space without a line break after
// it into parts of at most 512 characters: 512, 256 and so on down to 4, then 2 or 1, if white
// space or the end follows, like \s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}.
type shortSpaces matcher

func (m shortSpaces) each(w *work, text string, match func(start, end int) (more bool)) {
	for i := 0; i < len(text); {
		end := m(w, text, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
			w.step(n)
			continue
		}
		if last := text[end-1]; last == '\r' || last == '\n' || !blank(text[i:end]) {
			if !match(i, end) {
				return
			}
			i = end
			continue
		}
		stop := i + len(text[i:]) - len(strings.TrimLeftFunc(text[i:], isSpace))
		left := utf8.RuneCountInString(text[i:stop])
		// The last one may belong to the text that follows, unless the pattern has ruled that out.
		for alone := left == 1; left > 1 || left == 1 && (alone || stop == len(text)); {
			size := 1
			for _, n := range [...]int{512, 256, 128, 64, 32, 16, 8, 4, 2} {
				if n < left || n == left && stop == len(text) {
					size = n
					break
				}
			}
			next := run(size, isSpace)(w, text, i)
			if !match(i, next) {
				return
			}
			i, left = next, left-size
		}
	}
}
