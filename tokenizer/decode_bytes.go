package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// replacementChar replaces bytes that are not UTF-8.
const replacementChar = "\uFFFD"

// fallbackDecoding turns byte tokens, <0x00> to <0xFF>, into text. A run of byte tokens is valid
// only as a whole.
type fallbackDecoding struct {
	run  []byte
	next decoding
}

func decodeByteFallback(next decoding) decoding { return &fallbackDecoding{next: next} }

func (f *fallbackDecoding) token(text string, literal bool) {
	if !literal {
		if b, ok := parseByteToken(text); ok {
			f.run = append(f.run, b)
			return
		}
	}
	f.flush()
	f.next.token(text, literal)
}

func (f *fallbackDecoding) flush() {
	switch {
	case len(f.run) == 0:
		return
	case utf8.Valid(f.run):
		f.next.token(string(f.run), false)
	default:
		for range f.run {
			f.next.token(replacementChar, false)
		}
	}
	f.run = f.run[:0]
}

func (f *fallbackDecoding) end() {
	f.flush()
	f.next.end()
}

// parseByteToken returns the byte that a token like <0x0A> stands for.
func parseByteToken(text string) (b byte, ok bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	for _, c := range []byte(text[3:5]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		b = b<<4 | c
	}
	return b, true
}

// byteLevelDecoding turns tokens that spell bytes into one text. A token with any other character
// stands for its own bytes.
type byteLevelDecoding struct {
	bytes []byte // not yet a whole character
	next  decoding
}

func decodeByteLevel(next decoding) decoding { return &byteLevelDecoding{next: next} }

func (d *byteLevelDecoding) token(text string, literal bool) {
	ok := false
	if !literal {
		d.bytes, ok = spelledBytes(d.bytes, text)
	}
	if !ok {
		d.bytes = append(d.bytes, text...)
	}
	var out strings.Builder
	rest := d.bytes
	for len(rest) > 0 {
		n, state := scanChar(rest)
		if state == charIncomplete {
			break
		}
		if state == charValid {
			out.Write(rest[:n])
		} else {
			out.WriteString(replacementChar)
		}
		rest = rest[n:]
	}
	d.bytes = append(d.bytes[:0], rest...)
	if out.Len() > 0 {
		d.next.token(out.String(), literal)
	}
}

func (d *byteLevelDecoding) end() {
	if len(d.bytes) > 0 {
		d.next.token(replacementChar, false)
	}
	d.next.end()
}

// charState classifies the first bytes of a text.
type charState int

const (
	charValid      charState = iota // a character
	charInvalid                     // a maximal part of a character, or a byte that begins no character
	charIncomplete                  // all the bytes are the start of a character
)

// scanChar returns how many of the first bytes of b, which is not empty, belong together. It
// follows table 3-7 of the Unicode Standard and the recommendation there to replace maximal parts.
func scanChar(b []byte) (n int, state charState) {
	first := b[0]
	low, high := byte(0x80), byte(0xBF) // of the second byte
	var size int
	switch {
	case first < 0x80:
		return 1, charValid
	case first < 0xC2:
		return 1, charInvalid
	case first < 0xE0:
		size = 2
	case first < 0xF0:
		size = 3
		switch first {
		case 0xE0:
			low = 0xA0
		case 0xED:
			high = 0x9F
		}
	case first < 0xF5:
		size = 4
		switch first {
		case 0xF0:
			low = 0x90
		case 0xF4:
			high = 0x8F
		}
	default:
		return 1, charInvalid
	}
	for n = 1; n < size; n++ {
		if n == len(b) {
			return n, charIncomplete
		}
		if b[n] < low || b[n] > high {
			return n, charInvalid
		}
		low, high = 0x80, 0xBF
	}
	return size, charValid
}
