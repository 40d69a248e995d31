package tokenizer

import "unicode/utf8"

// joins are the pairs of bytes that stand side by side in some token. Where a text has another pair no token lies
// across, so that what is before and what is after merge on their own: a long piece needs no memory for all of
// it at one time.
type joins [256][4]uint64

// joinedPart is the length in bytes from which on a part is cut off a piece.
const joinedPart = 1 << 12

// add adds the pairs of a token.
func (j *joins) add(token string) {
	for i := 1; i < len(token); i++ {
		j[token[i-1]][token[i]/64] |= 1 << (token[i] % 64)
	}
}

// part returns the end of the first part of text: all of it without joins.
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
