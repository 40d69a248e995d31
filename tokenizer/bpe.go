package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// bpe is byte pair encoding (Sennrich et al., "Neural Machine Translation of Rare Words with
// Subword Units", 2016). A piece starts as its characters or bytes, and neighbors merge in the
// order of a list of rules.
type bpe struct {
	vocab *vocabulary
	rules map[[2]int32]mergeRule

	byteLevel bool             // a piece starts as its bytes, spelled as in bytelevel.go
	bytes     [256]int32       // the token of each byte's spelling, -1 for none
	whole     map[string]int32 // pieces that are a token without merging; nil without ignore_merges

	fallback *byteFallback // nil without byte_fallback
	unknown  int32         // id for unknown characters, -1 to drop them
	prefix   string        // put before each character of a piece but the first
	suffix   string        // put after the last character of a piece
	fuse     bool          // adjacent unknown characters become one token
	absent   *absentTokens // nil for none
	joins    *joins        // nil if merging depends on more than the tokens
	barred   []bool        // ids that text may not become; nil for none

	mergers *mergers
}

// without returns b without the barred tokens.
func (b *bpe) without(barred []bool) model {
	if barred == nil {
		return b
	}
	other := *b
	other.barred = barred
	other.joins = nil // a barred byte is unknown, and fusing unknown characters needs the whole piece
	return &other
}

// bars reports whether text may not become token id.
func (b *bpe) bars(id int32) bool { return b.barred != nil && int(id) < len(b.barred) && b.barred[id] }

// mergeRule is the token that a pair becomes and the rank of the rule.
type mergeRule struct{ id, rank int32 }

// merge implements mergeRules.
func (b *bpe) merge(left, right *part) (id, rank int32, ok bool) {
	rule, ok := b.rules[[2]int32{left.id, right.id}]
	return rule.id, rule.rank, ok && !b.bars(rule.id)
}

// init completes b from its vocabulary and its other fields, except for wholeLines. With
// ignoreMerges a piece that is a token is not merged.
func (b *bpe) init(ignoreMerges bool) {
	b.mergers = new(mergers)
	for i, spelling := range byteChars {
		b.bytes[i] = b.charID(spelling)
	}
	if b.prefix == "" && b.suffix == "" && b.knowsAll() {
		b.joins = new(joins)
		var buffer []byte
		for _, rule := range b.rules {
			text := b.text(rule.id)
			if bytes, ok := spelledBytes(buffer[:0], text); b.byteLevel && ok {
				buffer, text = bytes, string(bytes)
			}
			b.joins.add(text)
		}
	}
	if !ignoreMerges {
		return
	}
	b.whole = make(map[string]int32, len(b.vocab.ids))
	var buffer []byte
	for text, id := range b.vocab.ids {
		if text == "" || b.vocab.tokens[id].hidden {
			continue
		}
		if !b.byteLevel {
			b.whole[text] = id
		} else if bytes, ok := spelledBytes(buffer[:0], text); ok {
			b.whole[string(bytes)] = id
			buffer = bytes
		}
	}
}

// charID returns the id of a character that was found in text and is spelled as in the vocabulary,
// -1 for none.
func (b *bpe) charID(char string) int32 {
	if _, ok := b.vocab.ids[char]; !ok {
		return b.absent.find(char)
	}
	id, ok := b.vocab.textID(char)
	if !ok || b.bars(id) {
		return -1
	}
	return id
}

// knowsAll reports whether no text contains an unknown character.
func (b *bpe) knowsAll() bool {
	for c := range 256 {
		if b.byteLevel && b.bytes[c] < 0 || !b.byteLevel && (b.fallback == nil || b.fallback[c] < 0) {
			return b.unknown < 0
		}
	}
	return true
}

// wholeLines makes a piece of line feeds alone one token if the vocabulary has it.
func (b *bpe) wholeLines() {
	if b.whole == nil {
		b.whole = make(map[string]int32)
	}
	for text, id := range b.vocab.ids {
		if strings.Trim(text, "\n") == "" && text != "" && !b.vocab.tokens[id].hidden {
			b.whole[text] = id
		}
	}
}

// encode implements model.
func (b *bpe) encode(w *work, dst []int32, text string) []int32 {
	if id, ok := b.whole[text]; ok && !b.bars(id) {
		return append(dst, id)
	}
	for b.joins != nil && len(text) > joinedPart {
		n := b.joins.part(text)
		dst = b.encodePart(w, dst, text[:n])
		text = text[n:]
	}
	if text == "" {
		return dst
	}
	return b.encodePart(w, dst, text)
}

// encodePart appends the ids of a part of a piece. No token crosses the ends of the part.
func (b *bpe) encodePart(w *work, dst []int32, text string) []int32 {
	m := b.mergers.get(w, len(text))
	defer b.mergers.put(w, len(text), m)
	b.start(w, m, text)
	m.run(w, b)
	for i := int32(0); i >= 0 && int(i) < len(m.parts); i = m.parts[i].next {
		w.step(1)
		dst = b.appendID(dst, m.parts[i].id)
	}
	return dst
}

// start fills m with the parts of text.
func (b *bpe) start(w *work, m *merger, text string) {
	pending := false // an unknown token is still to be written
	for i := 0; i < len(text); {
		w.step(1)
		first := i == 0
		var char string // as the vocabulary spells it
		var id int32
		if b.byteLevel {
			char, id = byteChars[text[i]], b.bytes[text[i]]
			if id >= 0 && b.bars(id) {
				id = -1
			}
			i++
		} else {
			_, n := utf8.DecodeRuneInString(text[i:])
			char = text[i : i+n]
			id = b.charID(char)
			i += n
		}
		if !first && b.prefix != "" {
			char = b.prefix + char
			id = b.charID(char)
		}
		if i == len(text) && b.suffix != "" {
			char += b.suffix
			id = b.charID(char)
		}
		switch {
		case id >= 0:
			if pending {
				m.add(b.unknown, 0, 0)
				pending = false
			}
			m.add(id, 0, 0)
		case b.fallback.has(char):
			// A pending unknown token stays pending and comes after the bytes, as in Hugging Face
			// tokenizers.
			for _, c := range []byte(char) {
				m.add(b.fallback[c], 0, 0)
			}
		case b.unknown >= 0:
			if pending && !b.fuse {
				m.add(b.unknown, 0, 0)
			}
			pending = true
		}
	}
	if pending {
		m.add(b.unknown, 0, 0)
	}
}

// byteFallback is the token of each byte, spelled <0x00> to <0xFF>, -1 for none.
type byteFallback [256]int32

func newByteFallback(v *vocabulary) *byteFallback {
	const digits = "0123456789ABCDEF"
	f := new(byteFallback)
	for i := range f {
		f[i] = -1
		if id, ok := v.ids["<0x"+digits[i>>4:i>>4+1]+digits[i&15:i&15+1]+">"]; ok {
			f[i] = id
		}
	}
	return f
}

// has reports whether every byte of text has a token.
func (f *byteFallback) has(text string) bool {
	if f == nil {
		return false
	}
	for i := range len(text) {
		if f[text[i]] < 0 {
			return false
		}
	}
	return true
}
