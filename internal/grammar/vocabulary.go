package grammar

import "slices"

// maxPiece is the most bytes of a token's text. A longer one fits nowhere.
const maxPiece = 1 << 12

// tierBounds part the tokens by the length of their texts, in bytes. A lexeme of which n
// characters are left looks like one without a bound to all tokens shorter than n, so that
// most of its mask is that of any other.
var tierBounds = []int{4, 8, 16, 32, maxPiece}

// A Vocabulary is the tokens of a model. All grammars share it. It is safe for concurrent use.
type Vocabulary struct {
	pieces  [][]byte
	special map[string]int32
	ids     map[int32]bool // of special
	end     []int32
	size    int32 // numbers from 0 on
	words   int   // of a mask
	tiers   []tier
	shapes  shapes
}

// A tier is the tokens in a range of lengths.
type tier struct {
	trie   *trie
	window int // bytes of the longest token
}

// NewVocabulary makes one. pieces[id] is the bytes of a text token, nil where a number has
// none: a special token, or none at all. special is the special tokens by text, end those that
// end an answer; neither are text, whatever their pieces. It keeps what it is given.
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
