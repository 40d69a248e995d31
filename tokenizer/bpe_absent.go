package tokenizer

// absentTokens are texts that the merges of a GGUF file name and its vocabulary lacks, as in a
// vocabulary that was cut down. As in llama.cpp they merge like tokens, and those that remain
// become their bytes. Their ids follow the vocabulary's.
type absentTokens struct {
	first int32
	ids   map[string]int32
	texts []string
}

// id returns the id of a text that is not in the vocabulary. It adds the text if it is new.
func (a *absentTokens) id(text string) int32 {
	id, ok := a.ids[text]
	if !ok {
		id = a.first + int32(len(a.texts))
		a.ids[text], a.texts = id, append(a.texts, text)
	}
	return id
}

// find returns the id of a text that a merge names, or -1.
func (a *absentTokens) find(text string) int32 {
	if a != nil {
		if id, ok := a.ids[text]; ok {
			return id
		}
	}
	return -1
}

// mergedID returns the id of a text that a merge names. ok is false if text never becomes that
// token.
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

// appendID appends a token. An absent token becomes its bytes; in a byte-level vocabulary these are
// the bytes of its spelling, of which only ASCII's have a token.
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
