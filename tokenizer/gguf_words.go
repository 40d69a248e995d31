package tokenizer

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Keys of GGUF's metadata that only some models have.
const (
	keyLowercase    = "tokenizer.ggml.normalizer.lowercase"
	keyStripAccents = "tokenizer.ggml.normalizer.strip_accents"
	keyCharsmap     = "tokenizer.ggml.precompiled_charsmap"
	keyMergeSpaces  = "tokenizer.ggml.remove_extra_whitespaces"
)

// ggufWordPiece makes t BERT's tokenizer. GGUF spells a token that begins a word with ▁ and other
// tokens without a prefix.
func (t *Tokenizer) ggufWordPiece(m Metadata, unknown int32) {
	t.kind = "WordPiece"
	lower, ok := m.Bool(keyLowercase)
	lower = lower || !ok
	strip, ok := m.Bool(keyStripAccents)
	if !ok {
		strip = lower
	}
	t.normalizer = normalizer{eachCharacter(wpmText{lower, strip}.append)}
	t.splitter = splitter{split{literal(" "), removed, false}, before(metaspaceChar)}
	w := &wordPiece{unknown: unknown, maxChars: math.MaxInt64}
	w.init(&t.vocab, "")
	t.model = w
	t.decoder = []decodeStep{decodeReplace(replace{literal(metaspaceChar), " "}), decodeStripStart(' ', 1)}
}

// ggufUnigram makes t T5's tokenizer.
func (t *Tokenizer) ggufUnigram(m Metadata, types []int64, unknown int32) error {
	t.kind = "Unigram"
	scores, _ := m.Floats(keyScores)
	u := &unigram{vocab: &t.vocab, unknown: unknown, scores: make([]float64, len(t.vocab.tokens)), fuseOnly: true}
	copy(u.scores, scores)
	var normal []float64
	var user []entry
	typeOf := func(id int32) int64 {
		if int(id) < len(types) {
			return types[id]
		}
		return typeNormal
	}
	for i := range u.scores {
		id := int32(i)
		switch typeOf(id) {
		case typeNormal:
			normal = append(normal, u.scores[i])
		case typeUserDefined: // scored above all others
			u.scores[i] = 0
			user = append(user, entry{t.vocab.tokens[i].text, id})
		}
	}
	u.unknownScore = float64(float32(lowest(normal)) - unknownPenalty) // in the precision of the file
	u.init(func(id int32) bool {
		kind := typeOf(id)
		return kind == typeNormal || kind == typeUserDefined || kind == typeUnused
	})
	t.model = u

	n := &unigramText{user: newTrie(user)}
	prefix, _ := m.Bool(keySpacePrefix)
	n.merge, _ = m.Bool(keyMergeSpaces)
	n.first = prefix || n.merge
	if numbers, ok := m.Ints(keyCharsmap); ok {
		data := make([]byte, len(numbers))
		for i, b := range numbers {
			data[i] = byte(b) // numbers may be signed
		}
		var err error
		if n.chars, err = newCharsmap(data, new(growth)); err != nil {
			return fmt.Errorf("%s: %w", keyCharsmap, err)
		}
	}
	t.normalizer = normalizer{n}
	t.decoder = []decodeStep{decodeReplace(replace{literal(metaspaceChar), " "}), decodeByteFallback}
	if prefix {
		t.decoder = append(t.decoder, decodeStripStart(' ', 1))
	}
	return nil
}

// unigramText is SentencePiece's normalization in llama.cpp: a charsmap, and ▁ for spaces.
type unigramText struct {
	chars *charsmap // nil for none
	user  *trie     // user-defined tokens, which the charsmap does not change
	first bool      // put a space before the first word
	merge bool      // put one before the other words; remove all other spaces
}

// apply implements normalStep. No GGUF token matches in its output, so it returns no marks.
func (u *unigramText) apply(w *work, text string, _ []bool) (string, []bool) {
	var out strings.Builder
	out.Grow(len(text) + len(text)/2)
	inWord, later := false, false
	put := func(text string) {
		for i := range len(text) {
			switch {
			case text[i] != ' ':
				if !inWord && (later && u.merge || !later && u.first) {
					out.WriteString(metaspaceChar)
				}
				inWord, later = true, true
				out.WriteByte(text[i])
			default:
				inWord = false
				if !u.merge {
					out.WriteString(metaspaceChar)
				}
			}
		}
	}
	for i := 0; i < len(text); {
		w.step(1)
		if n := u.user.depth(text[i:]); n > 0 {
			put(text[i : i+n])
			i += n
			continue
		}
		if u.chars != nil {
			if to, n := u.chars.longest(text[i:]); n > 0 {
				put(to)
				i += n
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			put(replacementChar)
		} else {
			put(text[i : i+n])
		}
		i += n
	}
	return out.String(), nil
}
