package hub

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// ReadTokenizer reads the tokenizer from GGUF's metadata, from tokenizer.json, or else from
// tokenizer.model. pre overrides the pre-tokenizer that GGUF's metadata names, unless it is empty.
func ReadTokenizer(f Source, pre string) (*tokenizer.Tokenizer, error) {
	t, err := tokenizerOf(f, pre)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTokenizer, f.Path(), err)
	}
	return t, nil
}

func tokenizerOf(f Source, pre string) (*tokenizer.Tokenizer, error) {
	if f.Format() == modelfile.GGUF {
		return ggufTokenizer(f.Meta(), pre)
	}
	if pre != "" {
		return nil, fmt.Errorf("%w: pre-tokenizer %q: only GGUF files let you choose one", ErrOptions, pre)
	}
	config, _ := f.Asset("tokenizer_config.json")
	if data, ok := f.Asset("tokenizer.json"); ok {
		return tokenizer.FromJSON(data, config)
	}
	if data, ok := f.Asset("tokenizer.model"); ok {
		return tokenizer.FromSentencePiece(data, config)
	}
	return nil, fmt.Errorf("there is no tokenizer.json and no tokenizer.model beside the weights")
}

func ggufTokenizer(m *modelfile.Meta, pre string) (*tokenizer.Tokenizer, error) {
	if pre == "" {
		t, err := tokenizer.FromGGUF(m)
		if errors.Is(err, tokenizer.ErrPreTokenizer) {
			err = fmt.Errorf("%w; --pre-tokenizer (Options.PreTokenizer) takes another one", err)
		}
		return t, err
	}
	chosen, err := tokenizer.WithPreTokenizer(m, pre)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return tokenizer.FromGGUF(chosen)
}

// EndTokens returns the ids that end generation: all that the tokenizer, GGUF's metadata,
// generation_config.json and config.json name.
func EndTokens(f Source, tok *tokenizer.Tokenizer, generation *modelfile.Meta) map[int32]bool {
	ends := map[int32]bool{}
	if tok != nil {
		for _, id := range tok.EndTokens() {
			ends[id] = true
		}
	}
	if f.Format() == modelfile.GGUF {
		for _, key := range []string{"eos", "eot", "eom"} {
			addIDs(ends, f.Meta(), "tokenizer.ggml."+key+"_token_id")
		}
		return ends
	}
	addIDs(ends, generation, "eos_token_id")
	addIDs(ends, f.Meta(), "eos_token_id")
	addIDs(ends, f.Meta(), "text_config.eos_token_id") // of a model that also reads images
	return ends
}

// addIDs adds the id or list of ids at key to set.
func addIDs(set map[int32]bool, m *modelfile.Meta, key string) {
	ids, ok := m.Ints(key)
	if id, one := m.Int(key); one {
		ids, ok = []int64{id}, true
	}
	if !ok {
		return
	}
	for _, id := range ids {
		if id >= 0 && id < 1<<31 {
			set[int32(id)] = true
		}
	}
}

// SpecialTexts returns the texts of the tokens that chat templates use, by name.
func SpecialTexts(tok *tokenizer.Tokenizer) map[string]string {
	texts := map[string]string{}
	if tok == nil {
		return texts
	}
	for _, name := range []string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		if text, ok := tok.SpecialText(name); ok {
			texts[name] = text
		}
	}
	return texts
}

// configTexts reads the texts of special tokens from tokenizer_config.json. A token is a string, or
// an object with the key "content".
func configTexts(f Source) map[string]string {
	texts := map[string]string{}
	config, err := asset(f, "tokenizer_config.json")
	if err != nil {
		return texts // ReadTemplates has reported it
	}
	for _, name := range []string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		for _, key := range []string{name, name + ".content"} {
			if s, ok := config.String(key); ok {
				texts[name] = s
			}
		}
	}
	return texts
}
