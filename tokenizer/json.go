package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// FromJSON returns the tokenizer of a tokenizer.json of Hugging Face tokenizers.
// tokenizerConfigJSON is the tokenizer_config.json of the same model and may be nil. It names BOS,
// EOS and other special tokens. Its add_bos_token and add_eos_token take effect if the
// post-processor of tokenizer.json adds nothing. Truncation and padding are left to the caller.
//
// The error wraps [ErrUnsupported] and names the part if the file uses one that this package does
// not have. It wraps [ErrInvalid] if the file is wrong.
func FromJSON(tokenizerJSON, tokenizerConfigJSON []byte) (*Tokenizer, error) {
	var file jsonFile
	if err := decodeStrict(tokenizerJSON, &file); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	var config jsonConfig
	if tokenizerConfigJSON != nil {
		if err := json.Unmarshal(tokenizerConfigJSON, &config); err != nil {
			return nil, fmt.Errorf("tokenizer: tokenizer_config.json: %w: %w", ErrInvalid, err)
		}
	}
	t, err := file.build(&config, maxID(len(tokenizerJSON)))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	t.bound = newBound(t)
	return t, nil
}

// decodeStrict decodes JSON with nothing after it. An unknown field is an error, since it may
// change what another program computes.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the object")
		}
	}
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "unknown field"): // the error has no type
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}

// maxID returns the highest id that a description of size bytes may use. Vocabularies have few
// holes, so ids cannot be many times the number of tokens.
func maxID(size int) int64 { return int64(max(1<<18, size/2)) }

// jsonFile is a tokenizer.json.
type jsonFile struct {
	Version       *string         `json:"version"`
	AddedTokens   []jsonAdded     `json:"added_tokens"`
	Normalizer    *jsonNormalizer `json:"normalizer"`
	PreTokenizer  *jsonSplitter   `json:"pre_tokenizer"`
	PostProcessor *jsonPost       `json:"post_processor"`
	Decoder       *jsonDecoder    `json:"decoder"`
	Model         *jsonModel      `json:"model"`

	Truncation any `json:"truncation"`
	Padding    any `json:"padding"`
}

// jsonAdded is an added token.
type jsonAdded struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// UnmarshalJSON implements [json.Unmarshaler]. It ignores unknown fields, which tools add.
func (a *jsonAdded) UnmarshalJSON(data []byte) error {
	type plain jsonAdded
	return json.Unmarshal(data, (*plain)(a))
}

// withoutID returns a without its id, for comparison.
func (a jsonAdded) withoutID() jsonAdded {
	a.ID = 0
	return a
}

// build returns the tokenizer that the file and the config describe, with ids up to limit.
func (f *jsonFile) build(config *jsonConfig, limit int64) (*Tokenizer, error) {
	if f.Version != nil && *f.Version != "1.0" {
		return nil, fmt.Errorf("%w: version %s, not 1.0", ErrUnsupported, quoted(*f.Version))
	}
	if f.Model == nil {
		return nil, fmt.Errorf("%w: it has no model", ErrInvalid)
	}
	t := &Tokenizer{bos: -1, eos: -1, names: map[string]string{}}
	var err error
	if t.normalizer, err = f.Normalizer.build(); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	pre, err := f.PreTokenizer.build()
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	t.splitter, t.name = pre.steps, pre.name
	if t.post, err = f.PostProcessor.build(limit); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if t.decoder, err = f.Decoder.build(); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	if err := f.Model.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if t.vocab, err = f.Model.vocabulary(limit); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	added, special := f.addedTokens(config, &t.vocab)
	if f.Model.kind() != "BPE" {
		pre.spell()
		t.splitter = pre.steps
	}
	own := len(t.vocab.tokens)
	model, err := f.Model.build(&t.vocab, pre.byteLevel)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.addTokens(added, special, f.Model.size(), limit); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	t.model, t.kind = model.model, model.kind
	t.typed = model.without(t.vocab.barred(special, own))
	if f.Model.UnkToken != nil {
		t.names["unk_token"] = *f.Model.UnkToken
	} else if id := f.Model.UnkID; id != nil {
		t.names["unk_token"] = t.vocab.tokens[*id].text
	}
	t.bos = t.post.first()
	config.apply(t)
	return t, nil
}

// addedTokens returns the added tokens and the contents of the special ones. As in transformers,
// tokens that the config names are special too if the vocabulary has them.
func (f *jsonFile) addedTokens(config *jsonConfig, v *vocabulary) (added []jsonAdded, special map[string]bool) {
	added, special = slices.Clone(f.AddedTokens), make(map[string]bool)
	listed := make(map[string]bool, len(added))
	for _, a := range added {
		listed[a.Content] = true
		if a.Special {
			special[a.Content] = true
		}
	}
	for _, n := range config.named() {
		content := string(n)
		if _, ok := v.ids[content]; ok && content != "" && !listed[content] {
			added = append(added, jsonAdded{Content: content, Special: true})
			listed[content], special[content] = true, true
		}
	}
	return added, special
}

// addTokens assigns ids to the added tokens and builds their matchers. A token that the model lacks
// gets the next number after the size of the vocabulary, whatever the file says. In a vocabulary
// with holes that may be another token's id; the added token then replaces it in decoding.
func (t *Tokenizer) addTokens(tokens []jsonAdded, special map[string]bool, size int, limit int64) error {
	byContent := make(map[string]jsonAdded, len(tokens))
	var order []int32 // ids in the order of their first appearance
	byID := make(map[int32]jsonAdded, len(tokens))
	next := int64(size)
	t.vocab.added = make(map[string]int32)
	for _, a := range tokens {
		if a.Content == "" {
			continue
		}
		if before, ok := byContent[a.Content]; ok && before == a.withoutID() {
			continue
		}
		byContent[a.Content] = a.withoutID()
		id, known := t.vocab.find(a.Content)
		if !known {
			if next > limit {
				return fmt.Errorf("%w: %s has id %d, which is not from 0 to %d", ErrInvalid, quoted(a.Content), next, limit)
			}
			id = int32(next)
			next++
			t.vocab.set(id, a.Content)
			t.vocab.added[a.Content] = id
		}
		if _, ok := byID[id]; !ok {
			order = append(order, id)
		}
		byID[id] = a
	}
	var raw, folded []addedToken
	for _, id := range order {
		a, entry := byID[id], &t.vocab.tokens[id]
		found := addedToken{
			id: id, pattern: a.Content, special: a.Special,
			singleWord: a.SingleWord, lstrip: a.Lstrip, rstrip: a.Rstrip,
		}
		if a.Normalized {
			found.pattern, _ = t.normalizer.apply(nil, a.Content, nil)
			entry.decoded = found.pattern
			folded = append(folded, found)
		} else {
			raw = append(raw, found)
		}
	}
	t.added, t.folded = newAddedTokens(raw), newAddedTokens(folded)
	if len(special) > 0 {
		// Compare the text that the decoder gets. A special token that the normalizer spells
		// otherwise is not skipped, and another token with the spelling of a special one is.
		for i := range t.vocab.tokens {
			entry := &t.vocab.tokens[i]
			entry.special = entry.present && special[entry.decoded]
		}
	}
	return nil
}

// jsonConfig holds the fields of a tokenizer_config.json that concern the tokenizer.
type jsonConfig struct {
	AddBOS *bool     `json:"add_bos_token"`
	AddEOS *bool     `json:"add_eos_token"`
	BOS    jsonNamed `json:"bos_token"`
	EOS    jsonNamed `json:"eos_token"`
	Unk    jsonNamed `json:"unk_token"`
	Pad    jsonNamed `json:"pad_token"`
	Sep    jsonNamed `json:"sep_token"`
	Cls    jsonNamed `json:"cls_token"`
	Mask   jsonNamed `json:"mask_token"`
}

// named returns the special tokens in the order of specialNames, "" for those the config lacks.
func (c *jsonConfig) named() []jsonNamed {
	return []jsonNamed{c.BOS, c.EOS, c.Unk, c.Pad, c.Sep, c.Cls, c.Mask}
}

// jsonNamed is the text of a special token in a config: a string, or an object with its content.
type jsonNamed string

// UnmarshalJSON implements [json.Unmarshaler]. Other values, such as null or false, name no token.
func (n *jsonNamed) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(n))
	case '{':
		var object struct {
			Content string `json:"content"`
		}
		err := json.Unmarshal(data, &object)
		*n = jsonNamed(object.Content)
		return err
	}
	return nil
}

// apply sets the config's tokens in t.
func (c *jsonConfig) apply(t *Tokenizer) {
	for i, n := range c.named() {
		if n != "" {
			t.names[specialNames[i]] = string(n)
		}
	}
	if id, ok := t.vocab.find(string(c.BOS)); ok {
		t.bos = id
	}
	if id, ok := t.vocab.find(string(c.EOS)); ok {
		t.eos = id
		t.ends = []int32{id}
	}
	if t.post.special != nil {
		return
	}
	var special template
	if c.AddBOS != nil && *c.AddBOS && t.bos >= 0 {
		special.before = []int32{t.bos}
	}
	if c.AddEOS != nil && *c.AddEOS && t.eos >= 0 {
		special.after = []int32{t.eos}
	}
	if special.before != nil || special.after != nil {
		t.post = special.post()
	}
}
