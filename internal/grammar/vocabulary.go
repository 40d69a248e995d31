package grammar

import "slices"

// maxPiece is the largest length of a token's text in bytes. No mask contains a longer token.
const maxPiece = 1 << 12

// tierBounds split the tokens into tiers by the length of their texts in bytes. To tokens shorter
// than n, a lexeme with n characters left looks like one without a bound, so it shares most of its
// mask with unbounded lexemes.
var tierBounds = []int{4, 8, 16, 32, maxPiece}

// A Vocabulary is the tokens of a model. Grammars share it. It is safe for concurrent use.
type Vocabulary struct {
	pieces  [][]byte
	special map[string]int32
	ids     map[int32]bool // ids of the special tokens
	end     []int32
	size    int32 // ids run from 0 to size-1
	words   int   // length of a mask in 32-bit words
	tiers   []tier
	shapes  shapes
}

// A tier is the tokens in a range of lengths.
type tier struct {
	trie   *trie
	window int // bytes of the longest token
}

// NewVocabulary returns a vocabulary. pieces[id] is the bytes of a text token, or nil if the id is
// unused or a special token. special maps the texts of special tokens to their ids. end lists the
// tokens that end an answer. Special and end tokens are never text, whatever their pieces. The
// vocabulary keeps special, end and the bytes of pieces; the caller must not change them.
func NewVocabulary(pieces [][]byte, special map[string]int32, end []int32) *Vocabulary {
	v := &Vocabulary{pieces: slices.Clone(pieces), special: special, end: end, ids: map[int32]bool{}, size: int32(len(pieces))}
	for _, id := range special {
		v.ids[id] = true
		v.size = max(v.size, id+1)
	}
	for _, id := range end {
		v.size = max(v.size, id+1)
	}
	v.words = (int(v.size) + 31) / 32
	byTier := make([][]piece, len(tierBounds))
	for id, text := range v.pieces {
		if len(text) == 0 || len(text) > maxPiece || v.ids[int32(id)] || v.isEnd(int32(id)) {
			v.pieces[id] = nil
			continue
		}
		n, _ := slices.BinarySearch(tierBounds, len(text))
		byTier[n] = append(byTier[n], piece{text, int32(id)})
	}
	for _, pieces := range byTier {
		if len(pieces) > 0 {
			t := tier{trie: newTrie(pieces)}
			for _, p := range pieces {
				t.window = max(t.window, len(p.text))
			}
			v.tiers = append(v.tiers, t)
		}
	}
	return v
}

// Words returns the length of a mask, in words of 32 tokens.
func (v *Vocabulary) Words() int { return v.words }

func (v *Vocabulary) isEnd(id int32) bool     { return slices.Contains(v.end, id) }
func (v *Vocabulary) isSpecial(id int32) bool { return v.ids[id] && !v.isEnd(id) }

// text returns the bytes of a token, or nil if it has none.
func (v *Vocabulary) text(id int32) []byte {
	if id < 0 || int(id) >= len(v.pieces) {
		return nil
	}
	return v.pieces[id]
}
