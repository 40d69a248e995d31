package tokenizer

// token is an entry of the vocabulary.
type token struct {
	text    string // spelling in the file
	decoded string // input of the decoder: text, except for normalized added tokens
	present bool   // false for a hole
	special bool   // Decode may skip it
	hidden  bool   // its spelling in text does not become the token
	literal bool   // decoded is plain text, not in the model's encoding
}

// vocabulary maps ids to tokens and spellings to ids.
type vocabulary struct {
	tokens []token
	ids    map[string]int32 // the tokens that text may become
	added  map[string]int32 // tokens that only a match of the whole text becomes; nil for none
}

// find returns the id of the token with spelling text.
func (v *vocabulary) find(text string) (int32, bool) {
	id, ok := v.added[text]
	if !ok {
		id, ok = v.ids[text]
	}
	return id, ok
}

func (v *vocabulary) has(id int32) bool {
	return id >= 0 && int(id) < len(v.tokens) && v.tokens[id].present
}

// set makes id the token with spelling text. The caller bounds id.
func (v *vocabulary) set(id int32, text string) {
	if n := int(id) + 1; n > len(v.tokens) {
		v.tokens = append(v.tokens, make([]token, n-len(v.tokens))...)
	}
	v.tokens[id] = token{text: text, decoded: text, present: true}
}

// barred returns which of the model's own tokens, with ids below own, share a text with a special
// token; nil for none.
func (v *vocabulary) barred(special map[string]bool, own int) []bool {
	var barred []bool
	for text := range special {
		if id, ok := v.find(text); ok && int(id) < own {
			if barred == nil {
				barred = make([]bool, len(v.tokens))
			}
			barred[id] = true
		}
	}
	return barred
}

// textID returns the id of the token that a spelling found in text may become.
func (v *vocabulary) textID(text string) (int32, bool) {
	id, ok := v.ids[text]
	if !ok || v.tokens[id].hidden {
		return -1, false
	}
	return id, true
}
