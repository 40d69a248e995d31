package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spDecoding turns pieces into text as SentencePiece does: ▁ into a space, except at the start, and
// byte pieces into characters, with U+FFFD for each invalid byte.
type spDecoding struct {
	start bool   // nothing has been written
	all   bool   // drop every space at the start instead of only the first
	bytes []byte // not yet a whole character
	next  decoding
}

// decodeSentencePiece returns the step that drops no space, one or all spaces at the start of the
// text.
func decodeSentencePiece(one, all bool) decodeStep {
	return func(next decoding) decoding { return &spDecoding{start: one || all, all: all, next: next} }
}

func (s *spDecoding) token(text string, literal bool) {
	if !literal {
		if b, ok := parseByteToken(text); ok {
			s.bytes = append(s.bytes, b)
			s.flush(utf8.FullRune)
			return
		}
	}
	s.flush(func([]byte) bool { return true })
	if !literal {
		if s.start {
			rest, ok := strings.CutPrefix(text, metaspaceChar)
			text, s.start = rest, !ok || s.all
		}
		text = strings.ReplaceAll(text, metaspaceChar, " ")
	}
	s.write(text, literal)
}

// write passes text on.
func (s *spDecoding) write(text string, literal bool) {
	if text != "" {
		s.start = false
		s.next.token(text, literal)
	}
}

// flush passes on the characters in bytes while whole reports that there is one.
func (s *spDecoding) flush(whole func(bytes []byte) bool) {
	rest := s.bytes
	for len(rest) > 0 && whole(rest) {
		r, n := utf8.DecodeRune(rest)
		s.write(string(r), false)
		rest = rest[n:]
	}
	s.bytes = append(s.bytes[:0], rest...)
}

func (s *spDecoding) end() {
	s.flush(func([]byte) bool { return true })
	s.next.end()
}
