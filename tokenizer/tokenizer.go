// Package tokenizer turns text into token ids and back, from the metadata of a GGUF file
// ([FromGGUF]), from the tokenizer.json of a Hugging Face model ([FromJSON]) or from the
// tokenizer.model of SentencePiece ([FromSentencePiece]).
//
// It knows BPE in bytes and in characters, Unigram, WordPiece and WordLevel, pre-tokenizers, added
// tokens, normalizers, post-processors and decoders, and computes what the originals compute:
// Hugging Face tokenizers for tokenizer.json, llama.cpp for GGUF, SentencePiece for its own.
//
// It does not know chat templates, truncation, padding, or which ids end a conversation beyond
// those the file names; and it opens no files.
//
// Text need not be valid UTF-8. A byte that belongs to no character is treated as a character of
// its own with the properties of U+FFFD; byte-level models and byte fallback keep it as it is.
package tokenizer

import (
	"context"
	"slices"
	"unicode/utf8"
)

// Span is a run of text with one origin.
type Span struct {
	// Text is the run's text. A character may be split over spans.
	Text string

	// Special says that special tokens may match in Text: it comes from a template. In text that
	// does not (a user's) the spelling of a special token is ordinary text.
	Special bool
}

// Tokenizer converts between text and token ids. It does not change after construction and may be
// used by many goroutines at once.
type Tokenizer struct {
	kind string // what Kind returns
	name string // what Name returns

	guessed bool // what Guessed returns

	vocab      vocabulary
	added      *addedTokens // matched in the text as it came
	normalizer normalizer
	folded     *addedTokens // matched in the normalized text
	splitter   splitter
	model      model
	typed      model // makes no special token; nil for model itself
	post       postProcessor
	bound      bound // of what texts become
	decoder    []decodeStep
	between    bool // tokens that Decode leaves out lie between the others for decoder

	bos, eos int32 // -1 for none
	ends     []int32
	infill   *Infill           // that the metadata names; nil for none
	names    map[string]string // text of the special tokens by their name in tokenizer_config.json
}

// model cuts a piece of text that no pre-tokenizer cuts further into tokens.
type model interface {
	// encode appends the ids of text, which has from 1 to maxPiece bytes, to dst. It tells w what it does.
	encode(w *work, dst []int32, text string) []int32
}

// Encode returns the ids of text, in which special tokens match. With addSpecial it adds what the
// tokenizer puts around a sequence (BOS, EOS, or a post-processor's template), as add_special_tokens
// of Hugging Face tokenizers does.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.EncodeSpans([]Span{{Text: text, Special: true}}, addSpecial)
}

// EncodeSpans returns the ids of the concatenated text of spans. A special token matches only where
// it lies wholly in text that allows it (adjacent spans that do count as one); no other text becomes
// a special id, except an unknown character that becomes the unknown token and, with byte fallback,
// bytes whose tokens the file calls special. Everything else is tokenized as if it had never been
// split into spans. See [Tokenizer.Encode] for addSpecial.
func (t *Tokenizer) EncodeSpans(spans []Span, addSpecial bool) []int32 {
	return t.post.apply(t.encode(nil, spans), addSpecial)
}

// EncodeWithin is [Tokenizer.EncodeSpans] within limits. It ends soon after ctx does, with the error of ctx and its
// cause.
func (t *Tokenizer) EncodeWithin(ctx context.Context, l Limits, spans []Span, addSpecial bool) ([]int32, error) {
	return within(ctx, l, func(w *work) []int32 { return t.post.apply(t.encode(w, spans), addSpecial) })
}

// encode returns the ids of spans and nothing around them.
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
	room  int                           // of ids, as far as work knows it
	cut   func(text string, first bool) // pre-tokenizes and appends to ids
}

// piece encodes what the model sees by itself.
func (e *encoder) piece(text string) {
	e.work.step(len(text))
	e.ids = e.model.encode(e.work, e.ids, text)
	e.count()
}

// count tells the work of the ids so far.
func (e *encoder) count() {
	e.work.tokens(len(e.ids))
	if n := cap(e.ids); n > e.room {
		e.work.hold((n - e.room) * idBytes)
		e.room = n
	}
}

// normalBytes is how much memory a byte of text takes at most while it is normalized, beside itself: two texts
// that are up to three times as long, as one step reads the other's.
const normalBytes = 6

// text encodes text between two added tokens, which begins at offset of the whole text.
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

// VocabSize returns the number of ids: the highest one that has a token, plus one. A vocabulary may
// have holes, and a model may have more rows than its tokenizer has ids.
func (t *Tokenizer) VocabSize() int { return len(t.vocab.tokens) }

// Token returns the spelling of id in the vocabulary: not text, but what the file calls it (a
// byte-level token writes a space as Ġ). ok is false when the vocabulary has no such id.
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

// IsSpecial reports whether id is a special token, one that Decode leaves out on request: a special
// added token of tokenizer.json, a control symbol of tokenizer.model, or a control or unknown token of GGUF.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.vocab.has(id) && t.vocab.tokens[id].special
}

// BOS returns the token that begins a sequence.
func (t *Tokenizer) BOS() (id int32, ok bool) { return t.bos, t.bos >= 0 }

// EOS returns the token that ends a sequence.
func (t *Tokenizer) EOS() (id int32, ok bool) { return t.eos, t.eos >= 0 }

// EndTokens returns, in ascending order, the ids that end a generated text: those that the metadata
// names as end of sequence, turn and message and, in GGUF, the control tokens whose spelling is known
// to be one; for tokenizer.json the EOS of its config.
func (t *Tokenizer) EndTokens() []int32 { return slices.Clone(t.ends) }

// AddsBOS reports whether encoding with addSpecial puts the BOS token first.
func (t *Tokenizer) AddsBOS() bool {
	ids := t.post.apply(nil, true)
	return t.bos >= 0 && len(ids) > 0 && ids[0] == t.bos
}

// Kind returns the kind of model in words, such as "byte-level BPE".
func (t *Tokenizer) Kind() string { return t.kind }

// Name returns the name of the pre-tokenizer, or "" when text is not split before the model.
func (t *Tokenizer) Name() string { return t.name }

// Guessed reports whether a GGUF file does not say how text is cut before the model, so that what Name returns is
// only likely. Text may then become other ids than the model was trained on.
func (t *Tokenizer) Guessed() bool { return t.guessed }

// SpecialText returns the text of a special token by the name that tokenizer_config.json and chat
// templates use for it: bos_token, eos_token, unk_token, pad_token, sep_token, cls_token, mask_token.
func (t *Tokenizer) SpecialText(name string) (text string, ok bool) {
	text, ok = t.names[name]
	return text, ok
}

// specialNames are the names of special tokens in tokenizer_config.json.
var specialNames = []string{
	"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token",
}
