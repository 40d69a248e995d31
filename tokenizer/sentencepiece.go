package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kinds of models in SentencePiece's files.
const (
	spUnigram = 1
	spBPE     = 2
)

// spModel is a tokenizer.model: SentencePiece's ModelProto.
type spModel struct {
	texts  []string
	scores []float64
	types  []int64 // with the numbers of GGUF

	kind               int64
	fallback           bool // unknown characters become bytes
	suffix             bool // spaces end words
	unk, bos, eos, pad int64

	charsmap     []byte
	prefix       bool // a space is put before the first word
	merge        bool // of spaces in a row one stays
	escape       bool // spaces are written as ▁
	denormalizes bool
}

// FromSentencePiece returns the tokenizer of a tokenizer.model of SentencePiece, of type BPE or Unigram. The
// tokenizer_config.json beside it, which may be nil, names special tokens, adds tokens and says whether BOS
// and EOS are added; where it does not say, BPE adds BOS, as Llama does, and Unigram EOS, as T5 does. Control
// symbols are the special tokens.
//
// The error wraps [ErrUnsupported] and names the option when the file uses one that this package does not
// have, and [ErrInvalid] when the file is wrong.
func FromSentencePiece(model, tokenizerConfigJSON []byte) (*Tokenizer, error) {
	m := spModel{
		kind: spUnigram, bos: 1, eos: 2, pad: -1, prefix: true, merge: true, escape: true,
	}
	if err := m.read(model); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.model: %w", err)
	}
	var config struct {
		jsonConfig
		Added map[string]jsonAdded `json:"added_tokens_decoder"`
	}
	if tokenizerConfigJSON != nil {
		if err := json.Unmarshal(tokenizerConfigJSON, &config); err != nil {
			return nil, fmt.Errorf("tokenizer: tokenizer_config.json: %w: %w", ErrInvalid, err)
		}
	}
	t, err := m.build()
	if err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.model: %w", err)
	}
	limit := maxID(len(model) + len(tokenizerConfigJSON))
	if err := m.addTokens(t, &config.jsonConfig, config.Added, limit); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer_config.json: added_tokens_decoder: %w", err)
	}
	if config.AddBOS == nil && config.AddEOS == nil {
		bpe := m.kind == spBPE
		unigram := !bpe
		config.AddBOS, config.AddEOS = &bpe, &unigram
	}
	config.apply(t)
	return t, nil
}

// read reads the fields of the message that concern the tokenizer.
func (m *spModel) read(data []byte) error {
	return eachField(data, func(n protowire.Number, number uint64, data []byte) error {
		switch n {
		case 1:
			piece, score, kind := "", 0.0, int64(typeNormal)
			err := eachField(data, func(n protowire.Number, number uint64, data []byte) error {
				switch n {
				case 1:
					piece = string(data)
				case 2:
					score = float64(math.Float32frombits(uint32(number)))
				case 3:
					kind = int64(number)
				}
				return nil
			})
			m.texts, m.scores, m.types = append(m.texts, piece), append(m.scores, score), append(m.types, kind)
			return err
		case 2:
			return eachField(data, func(n protowire.Number, number uint64, _ []byte) error {
				switch n {
				case 3:
					m.kind = int64(number)
				case 24:
					m.suffix = number != 0
				case 35:
					m.fallback = number != 0
				case 40:
					m.unk = int64(number)
				case 41:
					m.bos = int64(number)
				case 42:
					m.eos = int64(number)
				case 43:
					m.pad = int64(number)
				}
				return nil
			})
		case 3:
			return eachField(data, func(n protowire.Number, number uint64, data []byte) error {
				switch n {
				case 2:
					m.charsmap = data
				case 3:
					m.prefix = number != 0
				case 4:
					m.merge = number != 0
				case 5:
					m.escape = number != 0
				}
				return nil
			})
		case 5:
			return eachField(data, func(n protowire.Number, _ uint64, data []byte) error {
				m.denormalizes = m.denormalizes || n == 2 && len(data) > 0
				return nil
			})
		}
		return nil
	})
}

// eachField calls use for every field of a message, with its number or its bytes.
func eachField(data []byte, use func(n protowire.Number, number uint64, data []byte) error) error {
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return fmt.Errorf("%w: %w", ErrInvalid, protowire.ParseError(size))
		}
		data = data[size:]
		var number uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var short uint32
			short, size = protowire.ConsumeFixed32(data)
			number = uint64(short)
		case protowire.BytesType:
			content, size = protowire.ConsumeBytes(data)
		default:
			size = protowire.ConsumeFieldValue(n, kind, data)
		}
		if size < 0 {
			return fmt.Errorf("%w: field %d: %w", ErrInvalid, n, protowire.ParseError(size))
		}
		data = data[size:]
		if err := use(n, number, content); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error for what there is not.
func (m *spModel) check() error {
	unsupported := func(what string) error { return fmt.Errorf("%w: %s", ErrUnsupported, what) }
	switch {
	case len(m.texts) == 0:
		return fmt.Errorf("%w: it has no pieces", ErrInvalid)
	case m.kind != spUnigram && m.kind != spBPE:
		return unsupported("model_type " + strconv.FormatInt(m.kind, 10) + ", neither 1 for Unigram nor 2 for BPE")
	case m.suffix:
		return unsupported("treat_whitespace_as_suffix")
	case !m.escape:
		return unsupported("escape_whitespaces false")
	case m.denormalizes:
		return unsupported("a denormalizer")
	case m.kind == spBPE && slices.Contains(m.types, typeUnused):
		return unsupported("unused pieces of BPE")
	}
	for i, text := range m.texts {
		if !utf8.ValidString(text) || text == "" {
			return fmt.Errorf("%w: piece %d is %s", ErrInvalid, i, quoted(text))
		}
		if math.IsNaN(m.scores[i]) || math.IsInf(m.scores[i], 0) {
			return fmt.Errorf("%w: piece %d has score %g", ErrInvalid, i, m.scores[i])
		}
	}
	return nil
}

// id returns n, or -1 when it is no token.
func (m *spModel) id(n int64) int32 {
	if n = int64(int32(n)); n < 0 || n >= int64(len(m.texts)) {
		return -1
	}
	return int32(n)
}

// build returns the tokenizer without the tokens that a config adds.
func (m *spModel) build() (*Tokenizer, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	t := &Tokenizer{
		names: map[string]string{}, folded: newAddedTokens(nil), bos: m.id(m.bos), eos: m.id(m.eos),
		vocab: ggufVocabulary(m.texts, m.types),
	}
	unknown := m.id(m.unk)
	for i, id := range []int32{t.bos, t.eos, unknown, m.id(m.pad)} {
		if id >= 0 {
			t.names[specialNames[i]] = m.texts[id]
		}
	}
	if t.eos >= 0 {
		t.ends = []int32{t.eos}
	}
	user := m.userDefined()
	if m.kind == spBPE {
		t.kind = "SentencePiece BPE"
		s := newSPM(&t.vocab, m.scores, unknown)
		if !m.fallback {
			s.fallback, s.fuse = new(byteFallback), true
		}
		t.model = s
	} else {
		t.kind = "Unigram"
		t.model = m.unigram(&t.vocab, unknown)
	}
	text := &unigramText{user: newTrie(user), first: m.merge && m.prefix, merge: m.merge}
	if len(m.charsmap) > 0 {
		var err error
		if text.chars, err = newCharsmap(m.charsmap, new(growth)); err != nil {
			return nil, fmt.Errorf("precompiled_charsmap: %w", err)
		}
	}
	t.normalizer = normalizer{text}
	t.decoder = []decodeStep{decodeReplace(replace{literal(metaspaceChar), " "}), decodeByteFallback}
	if m.prefix {
		if !m.merge {
			t.normalizer = append(t.normalizer, prepend(metaspaceChar))
		}
		t.decoder = append(t.decoder, decodeStripStart(' ', 1))
	}
	return t, nil
}

// userDefined returns the pieces that stay as they are wherever they stand.
func (m *spModel) userDefined() []entry {
	var user []entry
	for i, text := range m.texts {
		if m.types[i] == typeUserDefined {
			user = append(user, entry{text, int32(i)})
		}
	}
	return user
}

// unigram returns the model over v.
func (m *spModel) unigram(v *vocabulary, unknown int32) *unigram {
	u := &unigram{vocab: v, unknown: unknown, scores: slices.Clone(m.scores), fuseOnly: true}
	var normal []float64
	for i, kind := range m.types {
		if kind == typeNormal {
			normal = append(normal, m.scores[i])
		}
	}
	u.unknownScore = lowest(normal) - unknownPenalty
	if m.fallback {
		u.fallback = newByteFallback(v)
	}
	u.init(func(id int32) bool { return m.types[id] == typeNormal })
	return u
}

// addTokens makes findable what stands for itself: control symbols, user-defined ones and what a config adds
// by id.
func (m *spModel) addTokens(t *Tokenizer, config *jsonConfig, more map[string]jsonAdded, limit int64) error {
	added := map[int32]addedToken{}
	for i, text := range m.texts {
		if kind := m.types[i]; kind == typeControl || kind == typeUnknown || kind == typeUserDefined {
			added[int32(i)] = addedToken{id: int32(i), pattern: text, special: kind != typeUserDefined}
		}
	}
	for _, n := range config.named() {
		if id, ok := t.vocab.ids[string(n)]; ok {
			added[id] = addedToken{id: id, pattern: string(n), special: true}
		}
	}
	for number, a := range more {
		id, err := strconv.ParseInt(number, 10, 32)
		if err != nil || id < 0 || id > limit {
			return fmt.Errorf("%w: id %s is not from 0 to %d", ErrInvalid, quoted(number), limit)
		}
		if a.Content == "" {
			continue
		}
		if t.vocab.has(int32(id)) && t.vocab.tokens[id].text != a.Content {
			return fmt.Errorf("%w: id %d is %s, which tokenizer.model calls %s", ErrInvalid, id,
				quoted(a.Content), quoted(t.vocab.tokens[id].text))
		}
		if !t.vocab.has(int32(id)) {
			if other, ok := t.vocab.ids[a.Content]; ok {
				return fmt.Errorf("%w: %s has ids %d and %d", ErrInvalid, quoted(a.Content), other, id)
			}
			t.vocab.set(int32(id), a.Content)
			t.vocab.ids[a.Content] = int32(id)
		}
		added[int32(id)] = addedToken{
			id: int32(id), pattern: a.Content, special: a.Special,
			singleWord: a.SingleWord, lstrip: a.Lstrip, rstrip: a.Rstrip,
		}
	}
	list := make([]addedToken, 0, len(added))
	for _, id := range slices.Sorted(maps.Keys(added)) {
		a := added[id]
		entry := &t.vocab.tokens[id]
		entry.literal, entry.hidden, entry.special = true, true, a.special
		list = append(list, a)
	}
	t.added = newAddedTokens(list)
	return nil
}
