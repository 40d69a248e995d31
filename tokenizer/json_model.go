package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// jsonModel is the model of a tokenizer.json, of any type.
type jsonModel struct {
	Type                    string     `json:"type"`
	Dropout                 *float64   `json:"dropout"`
	UnkToken                *string    `json:"unk_token"`
	ContinuingSubwordPrefix *string    `json:"continuing_subword_prefix"`
	EndOfWordSuffix         *string    `json:"end_of_word_suffix"`
	FuseUnk                 bool       `json:"fuse_unk"`
	ByteFallback            bool       `json:"byte_fallback"`
	IgnoreMerges            bool       `json:"ignore_merges"`
	MaxInputCharsPerWord    *int64     `json:"max_input_chars_per_word"`
	UnkID                   *int64     `json:"unk_id"`
	Vocab                   jsonVocab  `json:"vocab"`
	Merges                  jsonMerges `json:"merges"`
}

// jsonVocab is a vocabulary: an object of ids, or for Unigram a list of tokens and scores.
type jsonVocab struct {
	ids    map[string]int32
	scored []jsonScored
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *jsonVocab) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '{':
		return json.Unmarshal(data, &v.ids)
	case '[':
		v.scored = []jsonScored{}
		return json.Unmarshal(data, &v.scored)
	}
	return nil
}

// jsonScored is a token and its score, written as an array.
type jsonScored struct {
	text  string
	score float64
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *jsonScored) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("a token of the vocabulary has %d parts, not its text and its score", len(parts))
	}
	if err := json.Unmarshal(parts[0], &s.text); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &s.score)
}

// jsonMerges is a list of pairs. Each is an array or, in older files, a string with a space between
// the parts.
type jsonMerges [][]string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *jsonMerges) UnmarshalJSON(data []byte) error {
	inside := strings.TrimLeft(string(data[1:min(len(data), 1024)]), " \t\r\n")
	if !strings.HasPrefix(inside, `"`) {
		return json.Unmarshal(data, (*[][]string)(m))
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	*m = make(jsonMerges, 0, len(lines))
	for _, line := range lines {
		if !strings.HasPrefix(line, "#version") {
			*m = append(*m, strings.Split(line, " "))
		}
	}
	return nil
}

// kind returns the type of the model. In files without a type, the fields tell the type.
func (m *jsonModel) kind() string {
	switch {
	case m.Type != "":
		return m.Type
	case m.Merges != nil:
		return "BPE"
	case m.Vocab.scored != nil:
		return "Unigram"
	case m.ContinuingSubwordPrefix != nil && m.MaxInputCharsPerWord != nil:
		return "WordPiece"
	case m.UnkToken != nil:
		return "WordLevel"
	}
	return ""
}

// check returns an error for an unknown kind of model or an unsupported option.
func (m *jsonModel) check() error {
	kind := m.kind()
	switch kind {
	case "BPE", "WordPiece", "WordLevel":
		if m.Vocab.ids == nil {
			return fmt.Errorf("%w: vocab is not an object of token ids", ErrInvalid)
		}
	case "Unigram":
		if m.Vocab.scored == nil {
			return fmt.Errorf("%w: vocab is not a list of tokens and scores", ErrInvalid)
		}
		if n := int64(len(m.Vocab.scored)); m.UnkID != nil && (*m.UnkID < 0 || *m.UnkID >= n) {
			return fmt.Errorf("%w: unk_id %d is not below the %d tokens", ErrInvalid, *m.UnkID, n)
		}
	default:
		return fmt.Errorf("%w: model of type %s", ErrUnsupported, quoted(m.Type))
	}
	if m.Dropout != nil && *m.Dropout != 0 {
		return fmt.Errorf("%w: dropout %g, which makes ids random; set it to null", ErrUnsupported, *m.Dropout)
	}
	if kind != "WordPiece" && kind != "WordLevel" {
		return nil
	}
	if m.UnkToken == nil {
		return fmt.Errorf("%w: %s has no unk_token", ErrInvalid, kind)
	}
	if _, ok := m.Vocab.ids[*m.UnkToken]; !ok {
		return fmt.Errorf("%w: unk_token %s is not in the vocabulary", ErrInvalid, quoted(*m.UnkToken))
	}
	if kind == "WordPiece" && (m.ContinuingSubwordPrefix == nil || m.MaxInputCharsPerWord == nil) {
		return fmt.Errorf("%w: it lacks continuing_subword_prefix or max_input_chars_per_word", ErrInvalid)
	}
	return nil
}

// vocabulary returns the model's own tokens, with ids up to limit. If tokens share an id, it
// decodes to the first in alphabetical order. If Unigram lists a token twice, text becomes the
// last.
func (m *jsonModel) vocabulary(limit int64) (vocabulary, error) {
	if m.Vocab.scored != nil {
		v := vocabulary{tokens: make([]token, 0, len(m.Vocab.scored)), ids: make(map[string]int32, len(m.Vocab.scored))}
		for i, s := range m.Vocab.scored {
			v.set(int32(i), s.text)
			v.ids[s.text] = int32(i)
		}
		return v, nil
	}
	highest := int32(-1)
	for text, id := range m.Vocab.ids {
		if id < 0 || int64(id) > limit {
			return vocabulary{}, fmt.Errorf("%w: token %s has id %d, which is not from 0 to %d",
				ErrInvalid, quoted(text), id, limit)
		}
		highest = max(highest, id)
	}
	v := vocabulary{tokens: make([]token, highest+1), ids: m.Vocab.ids}
	for text, id := range m.Vocab.ids {
		if t := &v.tokens[id]; !t.present || text < t.text {
			v.set(id, text)
		}
	}
	return v, nil
}

// size returns the number of the model's tokens. Ids of added tokens begin there.
func (m *jsonModel) size() int { return max(len(m.Vocab.ids), len(m.Vocab.scored)) }

// builtModel is a model, its kind and a way to bar tokens.
type builtModel struct {
	model
	kind string

	// without returns the model without the barred tokens. If it is nil, the model cannot bar
	// tokens. A nil barred returns the model itself.
	without func(barred []bool) model
}

// build returns the model over v, whose tokens are the model's own. With byteLevel, pieces are
// spelled as bytes.
func (m *jsonModel) build(v *vocabulary, byteLevel bool) (builtModel, error) {
	unknown := int32(-1)
	if m.UnkToken != nil {
		if id, ok := v.ids[*m.UnkToken]; ok {
			unknown = id
		}
	}
	var fallback *byteFallback
	if m.ByteFallback {
		fallback = newByteFallback(v)
	}
	switch m.kind() {
	case "WordPiece":
		w := &wordPiece{unknown: unknown, maxChars: *m.MaxInputCharsPerWord}
		w.init(v, *m.ContinuingSubwordPrefix)
		return builtModel{w, "WordPiece", w.without}, nil
	case "WordLevel":
		w := &wordLevel{vocab: v, unknown: unknown}
		return builtModel{w, "WordLevel", w.without}, nil
	case "Unigram":
		u := &unigram{vocab: v, unknown: -1, fallback: fallback, scores: make([]float64, len(m.Vocab.scored))}
		for i, s := range m.Vocab.scored {
			u.scores[i] = s.score
		}
		u.unknownScore = lowest(u.scores) - unknownPenalty
		if m.UnkID != nil {
			u.unknown = int32(*m.UnkID)
		}
		u.init(nil)
		return builtModel{u, "Unigram", u.without}, nil
	}
	b, err := m.bpe(v)
	if err != nil {
		return builtModel{}, err
	}
	b.fallback, b.unknown, b.byteLevel = fallback, unknown, byteLevel
	kind := "BPE"
	switch {
	case byteLevel:
		kind = "byte-level BPE"
	case m.ByteFallback:
		kind = "BPE with byte fallback"
	}
	b.init(m.IgnoreMerges)
	return builtModel{b, kind, b.without}, nil
}

// bpe returns the BPE model over v.
func (m *jsonModel) bpe(v *vocabulary) (*bpe, error) {
	b := &bpe{vocab: v, rules: make(map[[2]int32]mergeRule, len(m.Merges)), fuse: m.FuseUnk}
	if m.ContinuingSubwordPrefix != nil {
		b.prefix = *m.ContinuingSubwordPrefix
	}
	if m.EndOfWordSuffix != nil {
		b.suffix = *m.EndOfWordSuffix
	}
	var buffer []byte
	for i, pair := range m.Merges {
		if len(pair) != 2 {
			return nil, fmt.Errorf("%w: merge %d has %d parts, not 2", ErrInvalid, i, len(pair))
		}
		if len(pair[1]) < len(b.prefix) {
			return nil, fmt.Errorf("%w: merge %d: %s is shorter than continuing_subword_prefix %s",
				ErrInvalid, i, quoted(pair[1]), quoted(b.prefix))
		}
		buffer = append(append(buffer[:0], pair[0]...), pair[1][len(b.prefix):]...)
		left, okLeft := v.ids[pair[0]]
		right, okRight := v.ids[pair[1]]
		id, ok := v.ids[string(buffer)]
		if !okLeft || !okRight || !ok {
			return nil, fmt.Errorf("%w: merge %d of %s and %s: one of them or what they become is no token",
				ErrInvalid, i, quoted(pair[0]), quoted(pair[1]))
		}
		b.rules[[2]int32{left, right}] = mergeRule{id: id, rank: int32(i)}
	}
	return b, nil
}
