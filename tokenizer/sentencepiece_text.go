package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// spText is SentencePiece's normalization: a charsmap and the handling of spaces. It differs from
// llama.cpp's, which is unigramText.
type spText struct {
	chars  *charsmap // may be nil
	user   *trie     // user-defined pieces, which the charsmap does not change
	space  string    // the spelling of a space
	prefix bool      // put a space before the text
	suffix bool      // put a space after the text
	merge  bool      // merge runs of spaces to one, and drop those at the ends
}

// apply implements normalStep. No token matches in its output, so it returns no marks.
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
	space := s.merge // the text so far ends with a space: drop further spaces
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

// first returns the replacement of the start of text, which is not empty, and the length of that
// start.
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

// unknownPieces says which ids replace pieces without a token.
type unknownPieces struct {
	id       int32         // one for all in a row, -1 for none
	fallback *byteFallback // bytes instead of id; nil for none
}

// append appends id or, for -1, the ids for the unknown text. before says whether the previous
// piece was unknown. The result says whether this one is.
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
