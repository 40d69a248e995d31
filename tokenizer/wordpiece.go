package tokenizer

import "unicode/utf8"

// wordPiece splits a word into the longest tokens from left to right (Schuster and Nakajima,
// "Japanese and Korean Voice Search", 2012). A word with a part that is not a token is unknown as a
// whole.
type wordPiece struct {
	find     *trie
	rest     int32  // the node in find of the prefix of tokens that continue a word; -1 for none
	unknown  int32  // -1 for nothing
	maxChars int64  // longer words are unknown
	barred   []bool // ids that text may not become; nil for none
}

// without returns w without the barred tokens.
func (w *wordPiece) without(barred []bool) model {
	if barred == nil {
		return w
	}
	other := *w
	other.barred = barred
	return &other
}

// init completes w from its vocabulary. prefix begins the spelling of tokens that continue a word.
func (w *wordPiece) init(v *vocabulary, prefix string) {
	w.find = v.visibleTokens(nil)
	w.rest = w.find.walk(prefix)
}

// encode implements model.
func (w *wordPiece) encode(k *work, dst []int32, text string) []int32 {
	before := len(dst)
	if int64(len(text)) <= w.maxChars || int64(utf8.RuneCountInString(text)) <= w.maxChars {
		node := int32(0)
		for at := 0; node >= 0; node = w.rest {
			id, n := w.find.longest(node, text[at:], w.barred)
			if n == 0 {
				break
			}
			dst = append(dst, id)
			k.step(n)
			if at += n; at == len(text) {
				return dst
			}
		}
	}
	dst = dst[:before]
	if w.unknown >= 0 {
		dst = append(dst, w.unknown)
	}
	return dst
}

// wordLevel has one token per known word.
type wordLevel struct {
	vocab   *vocabulary
	unknown int32  // -1 for nothing
	barred  []bool // ids that text may not become; nil for none
}

// without returns w without the barred tokens.
func (w *wordLevel) without(barred []bool) model {
	if barred == nil {
		return w
	}
	other := *w
	other.barred = barred
	return &other
}

// encode implements model.
func (w *wordLevel) encode(_ *work, dst []int32, text string) []int32 {
	id, ok := w.vocab.textID(text)
	if !ok || w.barred != nil && w.barred[id] {
		id = w.unknown
	}
	if id < 0 {
		return dst
	}
	return append(dst, id)
}
