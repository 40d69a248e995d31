package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spText is SentencePiece's normalization: a charsmap, and what becomes of spaces. It differs from
// llama.cpp's, which unigramText is.
type spText struct {
	chars  *charsmap // nil for none
	user   *trie     // user-defined pieces, which the charsmap leaves as they are
	space  string    // how a space is written
	prefix bool      // a space is put before the text
	suffix bool      // or after it
	merge  bool      // of spaces in a row one stays, and of those at the ends none
}

// apply implements normalStep. No token is looked for in the text that it makes, so there are no marks.
func (s *spText) apply(w *work, text string, _ []bool) (string, []bool) {
	for s.merge && text != "" {
		w.step(1)
		to, n := s.first(text)
		if to != " " {
			break
		}
		text = text[n:]
	}
	if text == "" {
		return "", nil
	}
	var out strings.Builder
	out.Grow(len(text) + len(text)/2)
	if s.prefix && !s.suffix {
		out.WriteString(s.space)
	}
	space := s.merge // the one before ends with a space, so that no more are wanted
	for text != "" {
		w.step(1)
		to, n := s.first(text)
		text = text[n:]
		if space {
			to = strings.TrimLeft(to, " ")
		}
		for i := range len(to) {
			if to[i] == ' ' {
				out.WriteString(s.space)
			} else {
				out.WriteByte(to[i])
			}
		}
		if to != "" {
			space = s.merge && to[len(to)-1] == ' '
		}
	}
	normal := out.String()
	for s.merge && strings.HasSuffix(normal, s.space) {
		normal = normal[:len(normal)-len(s.space)]
	}
	if s.prefix && s.suffix {
		normal += s.space
	}
	return normal, nil
}

// first returns what the start of text, which is not empty, becomes, and its length.
func (s *spText) first(text string) (to string, n int) {
	if _, n := s.user.longest(0, text, nil); n > 0 {
		return text[:n], n
	}
	if s.chars != nil {
		if to, n := s.chars.longest(text); n > 0 {
			return to, n
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && n == 1 {
		return replacementChar, 1
	}
	return text[:n], n
}

// spCharacters is a model whose tokens are characters and user-defined pieces.
type spCharacters struct {
	vocab   *vocabulary
	user    *trie
	unknown unknownPieces
}

// encode implements model.
func (s *spCharacters) encode(w *work, dst []int32, text string) []int32 {
	before := false
	for i := 0; i < len(text); {
		w.step(1)
		id, n := s.user.longest(0, text[i:], nil)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
			id, _ = s.vocab.textID(text[i : i+n])
		}
		dst, before = s.unknown.append(dst, id, text[i:i+n], before)
		i += n
	}
	return dst
}

// spWords is a model whose tokens are words, each with the space before it.
type spWords struct {
	vocab   *vocabulary
	unknown unknownPieces
}

// encode implements model.
func (s *spWords) encode(w *work, dst []int32, text string) []int32 {
	before := false
	for text != "" {
		w.step(1)
		end := len(text)
		_, first := utf8.DecodeRuneInString(text)
		if next := strings.Index(text[first:], metaspaceChar); next >= 0 {
			end = first + next
		}
		id, _ := s.vocab.textID(text[:end])
		dst, before = s.unknown.append(dst, id, text[:end], before)
		text = text[end:]
	}
	return dst
}

// unknownPieces says what pieces that are no token become.
type unknownPieces struct {
	id       int32         // one of these for all in a row, -1 for nothing
	fallback *byteFallback // or their bytes; nil for no bytes
}

// append appends id, or for -1 what text becomes. before says that the piece before was no token, and the
// result whether this one is none.
func (u unknownPieces) append(dst []int32, id int32, text string, before bool) ([]int32, bool) {
	switch {
	case id >= 0:
		return append(dst, id), false
	case u.fallback.has(text):
		for _, c := range []byte(text) {
			dst = append(dst, u.fallback[c])
		}
	case u.id >= 0 && !before:
		dst = append(dst, u.id)
	}
	return dst, true
}
