package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// jsonModel is the model of a tokenizer.json.
type jsonModel struct {
	Type                    string     `json:"type"`
	Dropout                 *float64   `json:"dropout"`
	UnkToken                *string    `json:"unk_token"`
	ContinuingSubwordPrefix string     `json:"continuing_subword_prefix"`
	EndOfWordSuffix         string     `json:"end_of_word_suffix"`
	FuseUnk                 bool       `json:"fuse_unk"`
	ByteFallback            bool       `json:"byte_fallback"`
	IgnoreMerges            bool       `json:"ignore_merges"`
	Vocab                   jsonVocab  `json:"vocab"`
	Merges                  jsonMerges `json:"merges"`
}

// jsonVocab is the ids of a vocabulary by token; nil when it has another form, as Unigram's has.
type jsonVocab map[string]int32

// UnmarshalJSON implements [json.Unmarshaler].
func (v *jsonVocab) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	return json.Unmarshal(data, (*map[string]int32)(v))
}

// jsonMerges is a list of pairs, each written as an array or, in older files, with a space between.
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

// check returns an error for a model of a kind or with an option that there is not.
func (m *jsonModel) check() error {
	// Files from before models were tagged hold BPE when they have merges.
	old := m.Type == "" && m.Merges != nil
	if m.Type != "BPE" && !old {
		return fmt.Errorf("%w: model of type %s", ErrUnsupported, quoted(m.Type))
	}
	switch {
	case m.Vocab == nil:
		return fmt.Errorf("%w: vocab is not an object of token ids", ErrInvalid)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("%w: dropout %g, which makes ids random; set it to null", ErrUnsupported, *m.Dropout)
	case m.ContinuingSubwordPrefix != "":
		return fmt.Errorf("%w: continuing_subword_prefix %s", ErrUnsupported, quoted(m.ContinuingSubwordPrefix))
	case m.EndOfWordSuffix != "":
		return fmt.Errorf("%w: end_of_word_suffix %s", ErrUnsupported, quoted(m.EndOfWordSuffix))
	}
	return nil
}

// vocabulary returns the model's own tokens, with ids up to limit. Of tokens with the same id the first
// in alphabetical order is what the id decodes to.
func (m *jsonModel) vocabulary(limit int64) (vocabulary, error) {
	highest := int32(-1)
	for text, id := range m.Vocab {
		if id < 0 || int64(id) > limit {
			return vocabulary{}, fmt.Errorf("%w: token %s has id %d, which is not from 0 to %d",
				ErrInvalid, quoted(text), id, limit)
		}
		highest = max(highest, id)
	}
	v := vocabulary{tokens: make([]token, highest+1), ids: m.Vocab}
	for text, id := range m.Vocab {
		if t := &v.tokens[id]; !t.present || text < t.text {
			v.set(id, text)
		}
	}
	return v, nil
}

// build returns the model over v, whose tokens are the model's own so far. special are the texts of tokens
// that no merge may make.
func (m *jsonModel) build(v *vocabulary, special map[string]bool) (*bpe, error) {
	b := &bpe{
		vocab: v, rules: make(map[[2]int32]mergeRule, len(m.Merges)),
		unknown: -1, fuse: m.FuseUnk,
	}
	var buffer []byte
	for i, pair := range m.Merges {
		if len(pair) != 2 {
			return nil, fmt.Errorf("%w: merge %d has %d parts, not 2", ErrInvalid, i, len(pair))
		}
		buffer = append(append(buffer[:0], pair[0]...), pair[1]...)
		left, okLeft := v.ids[pair[0]]
		right, okRight := v.ids[pair[1]]
		id, ok := v.ids[string(buffer)]
		if !okLeft || !okRight || !ok {
			return nil, fmt.Errorf("%w: merge %d of %s and %s: one of them or what they become is no token",
				ErrInvalid, i, quoted(pair[0]), quoted(pair[1]))
		}
		if special[string(buffer)] {
			continue
		}
		b.rules[[2]int32{left, right}] = mergeRule{id: id, rank: int32(i)}
	}
	if m.ByteFallback {
		b.fallback = newByteFallback(v)
	}
	if m.UnkToken != nil {
		if id, ok := v.ids[*m.UnkToken]; ok {
			b.unknown = id
		}
	}
	return b, nil
}
