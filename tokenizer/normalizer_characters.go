package tokenizer

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// eachCharacter appends the normalized form of a character to dst. spelled is its spelling in the
// text: if r is U+FFFD it may be an invalid byte.
type eachCharacter func(dst []byte, r rune, spelled string) []byte

func (f eachCharacter) apply(w *work, text string, marks []bool) (string, []bool) {
	out := make([]byte, 0, len(text)+len(text)/8)
	var outMarks []bool
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		w.step(n)
		before := len(out)
		out = f(out, r, text[i:i+n])
		if marks != nil {
			outMarks = repeatMark(outMarks, anyMark(marks[i:i+n]), len(out)-before)
		}
		i += n
	}
	if marks != nil && outMarks == nil {
		outMarks = []bool{}
	}
	return string(out), outMarks
}

// cleanText drops control characters and replaces all white space by spaces, as BERT does.
func cleanText(dst []byte, r rune, spelled string) []byte {
	switch {
	case ' ' <= r && r <= '~':
		return append(dst, byte(r))
	case r == '\t' || r == '\n' || r == '\r':
		return append(dst, ' ')
	case r == 0 || r == utf8.RuneError || isOther(r):
		return dst
	case isSpace(r):
		return append(dst, ' ')
	}
	return append(dst, spelled...)
}

// spaceChinese puts a space on both sides of each Chinese character.
func spaceChinese(dst []byte, r rune, spelled string) []byte {
	if !isChinese(r) {
		return append(dst, spelled...)
	}
	dst = append(append(dst, ' '), spelled...)
	return append(dst, ' ')
}

// isChinese reports whether r is in a block of unified or compatibility ideographs. Like the
// originals, it omits a part of extension E.
func isChinese(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xF900 <= r && r <= 0xFAFF,
		0x20000 <= r && r <= 0x2A6DF, 0x2A700 <= r && r <= 0x2B81F, 0x2B920 <= r && r <= 0x2CEAF,
		0x2F800 <= r && r <= 0x2FA1F:
		return true
	}
	return false
}

// drop returns a step that removes the characters for which in returns true.
func drop(in func(r rune) bool) eachCharacter {
	return func(dst []byte, r rune, spelled string) []byte {
		if in(r) {
			return dst
		}
		return append(dst, spelled...)
	}
}

// nmt drops control characters and replaces white space and invisible characters by spaces, as
// SentencePiece's normalization for machine translation does.
func nmt(dst []byte, r rune, spelled string) []byte {
	switch {
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, 0x200B <= r && r <= 0x200F,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == utf8.RuneError:
		return append(dst, ' ')
	case 0 < r && r < ' ', r == 0x7F, r == 0x8F, r == 0x9F:
		return dst
	}
	return append(dst, spelled...)
}

// spellBytes spells each byte as a byte-level vocabulary does.
func spellBytes(dst []byte, _ rune, spelled string) []byte {
	for i := range len(spelled) {
		dst = append(dst, byteChars[spelled[i]]...)
	}
	return dst
}

// bertNormalizer returns the steps of BERT's normalizer. accents reports which marks to remove; it
// may be nil.
func bertNormalizer(clean, chinese, lower bool, accents func(r rune) bool) normalizer {
	var steps normalizer
	if clean {
		steps = append(steps, eachCharacter(cleanText))
	}
	if chinese {
		steps = append(steps, eachCharacter(spaceChinese))
	}
	if accents != nil {
		steps = append(steps, unicodeForm(norm.NFD), drop(accents))
	}
	if lower {
		steps = append(steps, lowercase{})
	}
	return steps
}
