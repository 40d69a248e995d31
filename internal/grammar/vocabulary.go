package grammar

import "slices"

// A Vocabulary is the tokens of a model. All grammars share it.
type Vocabulary struct {
	pieces  [][]byte
	special map[string]int32
	ids     map[int32]bool // of special
	end     []int32
}

// NewVocabulary makes one. pieces[id] is the bytes of a text token, nil where a number has
// none: a special token, or none at all. special is the special tokens by text, end those that
// end an answer.
func NewVocabulary(pieces [][]byte, special map[string]int32, end []int32) *Vocabulary {
	v := &Vocabulary{pieces: pieces, special: special, end: end, ids: map[int32]bool{}}
	for _, id := range special {
		v.ids[id] = true
	}
	return v
}

func (v *Vocabulary) isEnd(id int32) bool     { return slices.Contains(v.end, id) }
func (v *Vocabulary) isSpecial(id int32) bool { return v.ids[id] && !v.isEnd(id) }
