// Package tokenizer converts text to token ids and back. It reads the metadata of a GGUF file
// ([FromGGUF]), the tokenizer.json of a Hugging Face model ([FromJSON]) or the tokenizer.model of
// SentencePiece ([FromSentencePiece]).
//
// It supports BPE in bytes and in characters, Unigram, WordPiece and WordLevel, pre-tokenizers,
// added tokens, normalizers, post-processors and decoders. Results equal those of the originals:
// Hugging Face tokenizers for tokenizer.json, llama.cpp for GGUF, SentencePiece for its own files.
//
// It does not handle chat templates, truncation, padding, or ids that end a conversation beyond
// those the file names. It opens no files.
//
// Text need not be valid UTF-8. An invalid byte is treated as a character of its own with the
// properties of U+FFFD; byte-level models and byte fallback keep the byte.
package tokenizer

import (
	"context"
	"slices"
	"unicode/utf8"
)

// Span is a run of text with one origin.
type Span struct {
	// Text is the run's text. A character may be split across spans.
	Text string

	// Special says that special tokens may match in Text, as in text from a template. Otherwise, as
	// in a user's text, the spelling of a special token is ordinary text.
	Special bool
}

// Tokenizer converts between text and token ids. It is immutable and safe for concurrent use.
type Tokenizer struct {
	kind string // what Kind returns
	name string // what Name returns

	guessed bool // what Guessed returns

	vocab      vocabulary
	added      *addedTokens // matched in the original text
	normalizer normalizer
	folded     *addedTokens // matched in the normalized text
	splitter   splitter
	model      model
	typed      model // makes no special token; nil means model
	post       postProcessor
	bound      bound // on the length of text per id
	decoder    []decodeStep
	between    bool // special tokens separate the others for the decoder even if Decode skips them

	bos, eos int32 // -1 for none
	ends     []int32
	infill   *Infill           // named by the metadata; nil for none
	names    map[string]string // texts of the special tokens by their names in tokenizer_config.json
}

// model encodes a piece that no pre-tokenizer splits further.
type model interface {
	// encode appends the ids of text, which has from 1 to maxPiece bytes, to dst. It counts its
	// steps and memory in w.
	encode(w *work, dst []int32, text string) []int32
}

// Encode returns the ids of text, in which special tokens match. With addSpecial it adds the tokens
// around a sequence (BOS, EOS, or a post-processor's template), like add_special_tokens of Hugging
// Face tokenizers.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.EncodeSpans([]Span{{Text: text, Special: true}}, addSpecial)
}

// EncodeSpans returns the ids of the concatenated text of spans. A special token matches only
// within text that allows it; adjacent spans that allow it count as one. No other text becomes a
// special id, with two exceptions: an unknown character may become the unknown token, and byte
// fallback may use byte tokens that the file calls special. Otherwise text is tokenized as if it
// were one span. See [Tokenizer.Encode] for addSpecial.
func (t *Tokenizer) EncodeSpans(spans []Span, addSpecial bool) []int32 {
	return t.post.apply(t.encode(nil, spans), addSpecial)
}

// EncodeWithin is [Tokenizer.EncodeSpans] within limits. It returns soon after ctx ends, with the
// error of ctx and its cause.
func (t *Tokenizer) EncodeWithin(ctx context.Context, l Limits, spans []Span, addSpecial bool) ([]int32, error) {
	return within(ctx, l, func(w *work) []int32 { return t.post.apply(t.encode(w, spans), addSpecial) })
}

// encode returns the ids of spans without the tokens around a sequence.
func (t *Tokenizer) encode(w *work, spans []Span) []int32 {
	size := 0
	for _, s := range spans {
		size += len(s.Text)
	}
	t.bound.check(w, spans)
	if len(spans) > 1 {
		w.hold(size)
		defer w.release(size)
	}
	text, allowed := joinSpans(spans)
	room := len(text)/4 + 8
	if w != nil && w.limits.Tokens > 0 {
		room = min(room, w.limits.Tokens+8)
	}
	w.hold(room * idBytes)
	e := encoder{t: t, work: w, ids: make([]int32, 0, room), room: room, model: t.model}
	if allowed != nil && t.typed != nil {
		e.model = t.typed
	}
	e.cut = t.splitter.chain(w, func(piece string, _ bool) {
		for len(piece) > maxPiece {
			e.piece(piece[:maxPiece])
			piece = piece[maxPiece:]
		}
		e.piece(piece)
	})
	t.added.split(w, text, allowed, func(start, end int, id int32) {
		if id >= 0 {
			e.ids = append(e.ids, id)
			return
		}
		e.text(text[start:end], start, allowed)
	})
	e.count()
	return e.ids
}

// encoder is the state of one EncodeSpans call.
type encoder struct {
	t     *Tokenizer
	work  *work
	model model
	ids   []int32
	room  int                           // capacity of ids that work has counted
	cut   func(text string, first bool) // pre-tokenizes and appends to ids
}

// piece encodes a piece.
func (e *encoder) piece(text string) {
	e.work.step(len(text))
	e.ids = e.model.encode(e.work, e.ids, text)
	e.count()
}

// count reports the ids so far to work.
func (e *encoder) count() {
	e.work.tokens(len(e.ids))
	if n := cap(e.ids); n > e.room {
		e.work.hold((n - e.room) * idBytes)
		e.room = n
	}
}

// normalBytes is the most extra memory in bytes per byte of text during normalization: two texts of
// up to three times the length, since a step reads the output of the step before.
const normalBytes = 6

// text encodes the text between two added tokens, which begins at offset in the whole text.
func (e *encoder) text(text string, offset int, allowed *regions) {
	first := offset == 0
	if len(e.t.normalizer) == 0 && e.t.folded.empty() {
		e.cut(text, first)
		return
	}
	e.work.hold(normalBytes * len(text))
	defer e.work.release(normalBytes * len(text))
	marks := markTyped(text, offset, allowed, e.t.folded)
	head := 0
	var normal string
	if first {
		_, head = utf8.DecodeRuneInString(text)
		normal, marks, head = e.t.normalizer.withHead(e.work, text, marks, head)
	} else {
		normal, marks = e.t.normalizer.apply(e.work, text, marks)
	}
	if normal == "" {
		return
	}
	e.t.folded.split(e.work, normal, unmarked(marks), func(start, end int, id int32) {
		if id >= 0 {
			e.ids = append(e.ids, id)
			return
		}
		e.cut(normal[start:end], start < head)
	})
}

// VocabSize returns the highest id that has a token, plus one. A vocabulary may have holes, and a
// model may have more rows than its tokenizer has ids.
func (t *Tokenizer) VocabSize() int { return len(t.vocab.tokens) }

// Token returns the spelling of id in the vocabulary. It is not text: a byte-level token writes a
// space as Ġ. ok is false if the vocabulary has no such id.
func (t *Tokenizer) Token(id int32) (token string, ok bool) {
	if !t.vocab.has(id) {
		return "", false
	}
	return t.vocab.tokens[id].text, true
}

// ID returns the id of a token by its spelling in the vocabulary.
func (t *Tokenizer) ID(token string) (id int32, ok bool) {
	return t.vocab.find(token)
}

// IsSpecial reports whether id is a special token, which Decode can skip: a special added token of
// tokenizer.json, a control symbol of tokenizer.model, or a control or unknown token of GGUF.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.vocab.has(id) && t.vocab.tokens[id].special
}

// BOS returns the token that begins a sequence.
func (t *Tokenizer) BOS() (id int32, ok bool) { return t.bos, t.bos >= 0 }

// EOS returns the token that ends a sequence.
func (t *Tokenizer) EOS() (id int32, ok bool) { return t.eos, t.eos >= 0 }

// EndTokens returns, in ascending order, the ids that end a generated text: those that the metadata
// names as end of sequence, turn and message and, in GGUF, control tokens with a known spelling.
// For tokenizer.json it returns the EOS of its config.
func (t *Tokenizer) EndTokens() []int32 { return slices.Clone(t.ends) }

// AddsBOS reports whether encoding with addSpecial begins with BOS.
func (t *Tokenizer) AddsBOS() bool {
	ids := t.post.apply(nil, true)
	return t.bos >= 0 && len(ids) > 0 && ids[0] == t.bos
}

// Kind returns the kind of model, such as "byte-level BPE".
func (t *Tokenizer) Kind() string { return t.kind }

// Name returns the name of the pre-tokenizer, or "" if text is not split before the model.
func (t *Tokenizer) Name() string { return t.name }

// Guessed reports whether a GGUF file does not name its pre-tokenizer, so that Name is a guess.
// Text may then become other ids than those the model was trained on.
func (t *Tokenizer) Guessed() bool { return t.guessed }

// SpecialText returns the text of a special token by its name in tokenizer_config.json and chat
// templates: bos_token, eos_token, unk_token, pad_token, sep_token, cls_token, mask_token.
func (t *Tokenizer) SpecialText(name string) (text string, ok bool) {
	text, ok = t.names[name]
	return text, ok
}

// specialNames are the names of special tokens in tokenizer_config.json.
var specialNames = []string{
	"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token",
}
