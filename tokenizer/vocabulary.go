package tokenizer

// token is an entry of the vocabulary.
type token struct {
	text    string // its spelling in the file
	decoded string // what the decoder is given: text, but for normalized added tokens
	present bool   // false for a hole
	special bool   // Decode may leave it out
	hidden  bool   // its spelling, found in text, does not make it the token
	literal bool   // decoded is plain text, in no encoding of the model's
}

// vocabulary is the tokens by id and the ids by spelling.
type vocabulary struct {
	tokens []token
	ids    map[string]int32 // what text may become
	added  map[string]int32 // what only a match of the whole text becomes; nil for nothing
}

// find returns the id of the token that is spelled text.
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

// set makes id the token spelled text. The caller has bounded id.
func (v *vocabulary) set(id int32, text string) {
	if n := int(id) + 1; n > len(v.tokens) {
		v.tokens = append(v.tokens, make([]token, n-len(v.tokens))...)
	}
	v.tokens[id] = token{text: text, decoded: text, present: true}
}

// barred returns which tokens of the model's own, whose ids are below own, are among those with the texts of
// special ones; nil for none.
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
