package tokenizer

// absentTokens are texts that merges of a GGUF file speak of and its vocabulary lacks, as one that was cut down does.
// As in llama.cpp they merge like tokens, and those that are left become their bytes. Their ids are those after the
// vocabulary's.
type absentTokens struct {
	first int32
	ids   map[string]int32
	texts []string
}

// id returns the id of a text, which is not in the vocabulary.
func (a *absentTokens) id(text string) int32 {
	id, ok := a.ids[text]
	if !ok {
		id = a.first + int32(len(a.texts))
		a.ids[text], a.texts = id, append(a.texts, text)
	}
	return id
}

// find returns the id of a text that a merge speaks of, or -1.
func (a *absentTokens) find(text string) int32 {
	if a != nil {
		if id, ok := a.ids[text]; ok {
			return id
		}
	}
	return -1
}

// mergedID returns the id of a text that a merge speaks of, false for one that text never becomes.
func (b *bpe) mergedID(text string) (id int32, ok bool) {
	id, ok = b.vocab.ids[text]
	if !ok {
		return b.absent.id(text), true
	}
	return id, !b.vocab.tokens[id].hidden
}

// text returns the text of an id.
func (b *bpe) text(id int32) string {
	if b.absent != nil && id >= b.absent.first {
		return b.absent.texts[id-b.absent.first]
	}
	return b.vocab.tokens[id].text
}

// appendID appends a token, or what an absent one becomes. The bytes of a byte-level vocabulary's are those of its
// spelling, of which only ASCII's have a token.
func (b *bpe) appendID(dst []int32, id int32) []int32 {
	if b.absent == nil || id < b.absent.first {
		return append(dst, id)
	}
	for _, c := range []byte(b.text(id)) {
		id := int32(-1)
		if b.fallback != nil {
			id = b.fallback[c]
		} else if b.byteLevel {
			id, _ = b.vocab.textID(string([]byte{c}))
		}
		if id >= 0 {
			dst = append(dst, id)
		}
	}
	return dst
}
