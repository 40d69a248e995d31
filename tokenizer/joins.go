package tokenizer

import "unicode/utf8"

// joins is the set of byte pairs that are adjacent in some token. No token crosses any other pair,
// so the text before and after such a pair merges separately: a long piece needs no memory for all
// of it at once.
type joins [256][4]uint64

// joinedPart is the least length in bytes of a part that is cut off a piece.
const joinedPart = 1 << 12

// add adds the pairs of a token.
func (j *joins) add(token string) {
	for i := 1; i < len(token); i++ {
		j[token[i-1]][token[i]/64] |= 1 << (token[i] % 64)
	}
}

// part returns the end of the first part of text, the whole text if j is nil.
func (j *joins) part(text string) int {
	if j == nil {
		return len(text)
	}
	for i := joinedPart; i < len(text); i++ {
		if j[text[i-1]][text[i]/64]>>(text[i]%64)&1 == 0 && utf8.RuneStart(text[i]) {
			return i
		}
	}
	return len(text)
}
