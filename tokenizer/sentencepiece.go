package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kinds of models in SentencePiece's files.
const (
	spUnigram = 1
	spBPE     = 2
	spWord    = 3
	spChar    = 4
)

// spModel is a tokenizer.model: SentencePiece's ModelProto.
type spModel struct {
	texts  []string
	scores []float64
	types  []int64 // numbered as in GGUF

	kind               int64
	fallback           bool   // unknown characters become their bytes
	suffix             bool   // a space ends a word instead of beginning one
	surface            string // the decoded text of unknown characters
	unk, bos, eos, pad int64

	charsmap     []byte
	prefix       bool // put a space before the first word
	merge        bool // merge runs of spaces to one
	escape       bool // write spaces as ▁
	denormalizes bool
}

// FromSentencePiece returns the tokenizer of SentencePiece's tokenizer.model. tokenizerConfigJSON
// is the tokenizer_config.json of the same model and may be nil. It names special tokens, adds
// tokens and says whether to add BOS and EOS. By default BPE adds BOS, as Llama does, and the other
// models EOS, as T5 does. Control symbols are the special tokens.
//
// The error wraps [ErrUnsupported] and names the option if the file uses one that this package does
// not have. It wraps [ErrInvalid] if the file is wrong.
func FromSentencePiece(model, tokenizerConfigJSON []byte) (*Tokenizer, error) {
	m := spModel{
		kind: spUnigram, surface: " \u2047 ", bos: 1, eos: 2, pad: -1, prefix: true, merge: true, escape: true,
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
	t.bound = newBound(t)
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
			return eachField(data, func(n protowire.Number, number uint64, data []byte) error {
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
				case 44:
					m.surface = strings.ToValidUTF8(string(data), replacementChar)
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

// eachField calls use for every field of a message, with its integer value or its bytes.
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

// check returns an error for unsupported options.
func (m *spModel) check() error {
	unsupported := func(what string) error { return fmt.Errorf("%w: %s", ErrUnsupported, what) }
	switch {
	case len(m.texts) == 0:
		return fmt.Errorf("%w: it has no pieces", ErrInvalid)
	case m.kind < spUnigram || m.kind > spChar:
		return unsupported("model_type " + strconv.FormatInt(m.kind, 10) + ", which is not from 1 to 4")
	case m.denormalizes:
		return unsupported("a denormalizer")
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

// id returns n, or -1 if n is not the id of a token.
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
		vocab: m.vocabulary(), between: true,
	}
	unknown := int32(slices.Index(m.types, typeUnknown))
	for i, id := range []int32{t.bos, t.eos, unknown, m.id(m.pad)} {
		if id >= 0 {
			t.names[specialNames[i]] = m.texts[id]
		}
	}
	if t.eos >= 0 {
		t.ends = []int32{t.eos}
	}
	text := &spText{user: newTrie(m.userDefined()), space: metaspaceChar, prefix: m.prefix, suffix: m.suffix, merge: m.merge}
	if !m.escape {
		text.space = " "
	}
	if len(m.charsmap) > 0 {
		var err error
		if text.chars, err = newCharsmap(m.charsmap, new(growth)); err != nil {
			return nil, fmt.Errorf("precompiled_charsmap: %w", err)
		}
	}
	t.normalizer = normalizer{text}
	t.kind, t.model = m.model(&t.vocab, text.user, unknown)
	t.decoder = []decodeStep{decodeSentencePiece(m.prefix || m.merge, m.merge)}
	return t, nil
}

// vocabulary returns the pieces. If a control symbol and another piece share a spelling, text
// becomes the other piece.
func (m *spModel) vocabulary() vocabulary {
	v := ggufVocabulary(m.texts, m.types)
	for i, text := range m.texts {
		token := &v.tokens[i]
		switch m.types[i] {
		case typeUnknown:
			token.decoded, token.special = m.surface, false
		case typeNormal, typeUserDefined, typeUnused:
			if v.tokens[v.ids[text]].hidden {
				v.ids[text] = int32(i)
			}
			_, token.literal = parseByteToken(text)
		}
	}
	return v
}

// userDefined returns the pieces that are never split or changed.
func (m *spModel) userDefined() []entry {
	var user []entry
	for i, text := range m.texts {
		if m.types[i] == typeUserDefined {
			user = append(user, entry{text, int32(i)})
		}
	}
	return user
}

// model returns the model over v and its kind.
func (m *spModel) model(v *vocabulary, user *trie, unknown int32) (kind string, _ model) {
	pieces := unknownPieces{id: unknown}
	if m.fallback {
		pieces.fallback = newByteFallback(v)
	}
	switch m.kind {
	case spBPE:
		s := newSPM(v, m.scores, unknown)
		if !m.fallback {
			s.fallback, s.fuse = new(byteFallback), true
		}
		s.user, s.types = user, m.types
		if slices.Contains(m.types, typeUnused) {
			s.joins = nil // whether an unused piece is split depends on the whole text
		}
		return "SentencePiece BPE", s
	case spWord:
		return "SentencePiece words", &spWords{v, pieces}
	case spChar:
		return "SentencePiece characters", &spCharacters{v, user, pieces}
	}
	return "Unigram", m.unigram(v, unknown, pieces.fallback)
}

// unigram returns the model over v. Scores have the precision of the original, so that equally good
// segmentations are resolved alike.
func (m *spModel) unigram(v *vocabulary, unknown int32, fallback *byteFallback) *unigram {
	u := &unigram{
		vocab: v, unknown: unknown, scores: slices.Clone(m.scores), fallback: fallback, fuseOnly: true, single: true,
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i, kind := range m.types {
		if kind == typeNormal {
			low, high = min(low, m.scores[i]), max(high, m.scores[i])
		}
	}
	if low > high { // there are no normal pieces
		low, high = 0, 0
	}
	for i, kind := range m.types {
		if kind == typeUserDefined { // scored above its parts
			u.scores[i] = float64(float32(float64(utf8.RuneCountInString(m.texts[i]))*high - 0.1))
		}
	}
	u.unknownScore = float64(float32(low) - unknownPenalty)
	u.init(func(id int32) bool { return m.types[id] == typeNormal || m.types[id] == typeUserDefined })
	return u
}

// addTokens builds the matchers for control symbols and the tokens that a config adds by id.
func (m *spModel) addTokens(t *Tokenizer, config *jsonConfig, more map[string]jsonAdded, limit int64) error {
	added := map[int32]addedToken{}
	for i, text := range m.texts {
		if kind := m.types[i]; kind == typeControl || kind == typeUnknown {
			added[int32(i)] = addedToken{id: int32(i), pattern: text, special: true}
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
		known := int(id) < len(m.types)
		entry.literal = true
		entry.hidden = entry.hidden || a.special || !known
		entry.special = a.special && (!known || m.types[id] != typeUnknown)
		list = append(list, a)
	}
	t.added = newAddedTokens(list)
	return nil
}
