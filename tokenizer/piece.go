package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Piece returns the bytes that id adds to a text in which it is not the first token: part of a
// character if the token is one. It returns nil for an id outside the vocabulary.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.vocab.has(id) {
		return nil
	}
	token := &t.vocab.tokens[id]
	if token.special || token.literal {
		return []byte(token.decoded)
	}
	before := ""
	ids := []int32{id}
	if letter, ok := t.vocab.ids["a"]; ok { // nothing is stripped after a first token
		before, ids = t.Decode([]int32{letter}, false), []int32{letter, id}
	}
	text, ok := strings.CutPrefix(t.Decode(ids, false), before)
	if ok && !strings.ContainsRune(text, utf8.RuneError) {
		return []byte(text)
	}
	if b, ok := parseByteToken(token.decoded); ok {
		return []byte{b}
	}
	if b, ok := spelledBytes(nil, token.decoded); ok {
		return b
	}
	return []byte(text)
}
