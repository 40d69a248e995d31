package tokenizer_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/realizar/realizar/tokenizer"
)

// jsonMetadata is metadata written as JSON. A number has every type that it fits.
type jsonMetadata map[string]any

func (m jsonMetadata) String(key string) (string, bool) { s, ok := m[key].(string); return s, ok }
func (m jsonMetadata) Bool(key string) (bool, bool)     { b, ok := m[key].(bool); return b, ok }

func (m jsonMetadata) Int(key string) (int64, bool) {
	n, ok := m[key].(float64)
	return int64(n), ok
}

func (m jsonMetadata) Strings(key string) ([]string, bool) { return elements[string](m, key) }
func (m jsonMetadata) Floats(key string) ([]float64, bool) { return elements[float64](m, key) }

func (m jsonMetadata) Ints(key string) ([]int64, bool) {
	numbers, ok := elements[float64](m, key)
	ints := make([]int64, len(numbers))
	for i, n := range numbers {
		ints[i] = int64(n)
	}
	return ints, ok
}

func elements[T any](m jsonMetadata, key string) ([]T, bool) {
	list, ok := m[key].([]any)
	values := make([]T, len(list))
	for i, e := range list {
		if values[i], ok = e.(T); !ok {
			return nil, false
		}
	}
	return values, ok
}

// FuzzFromGGUF checks that no metadata and no text lead to a panic, an id outside the vocabulary,
// text that is not UTF-8, or a control token in typed text.
func FuzzFromGGUF(f *testing.F) {
	const text = "it's <s> 世界 12345  x\n\n é e\u0301 ภาษา 한국어 <sentinel:1>~ 👩\u200d💻\xff"
	seed := func(m metadata, more ...any) {
		m = maps.Clone(m)
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		data, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, text)
	}
	bpe := metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a", "b", "Ġ", "Ġa", "ab", "<s>", "<|im_end|>", "1", "2", "12"},
		"tokenizer.ggml.token_type": []int64{1, 1, 1, 1, 1, 3, 4, 1, 1, 1}, "tokenizer.ggml.merges": []string{"Ġ a", "a b", "1 2", "Ġa b"},
	}
	seed(bpe)
	for _, pre := range tokenizer.PreTokenizers() {
		seed(bpe, "tokenizer.ggml.pre", pre)
	}
	characters := []string{"<0xC3>", "▁", "a", "\n", "\n\n", "▁a"}
	seed(bpe, "tokenizer.ggml.model", "gemma4", "tokenizer.ggml.tokens", characters, "tokenizer.ggml.merges", []string{"▁ a"},
		"tokenizer.ggml.bos_token_id", 2)
	spm := spmMetadata("▁", "a", "▁a", "世")
	seed(spm)
	seed(spm, "tokenizer.ggml.add_space_prefix", false, "general.name", "Phi-3")
	t5 := t5Metadata([]string{"▁", "a", "▁a", "世", "x"}, []float64{-1, -2, -2.5, -3, 0})
	seed(t5)
	chars := make([]int64, len(charsmap))
	for i, b := range charsmap {
		chars[i] = int64(b)
	}
	seed(t5, "tokenizer.ggml.precompiled_charsmap", chars, "tokenizer.ggml.remove_extra_whitespaces", false)
	seed(metadata{
		"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": []string{"[CLS]", "[SEP]", "[UNK]", "▁it", "▁'", "▁s", "e"},
		"tokenizer.ggml.token_type": []int64{3, 3, 2, 1, 1, 1, 1}, "tokenizer.ggml.bos_token_id": 0,
		"tokenizer.ggml.seperator_token_id": 1, "tokenizer.ggml.unknown_token_id": 2,
	}, "tokenizer.ggml.normalizer.lowercase", false)
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		var m jsonMetadata
		if json.Unmarshal(data, &m) != nil {
			return
		}
		tok, err := tokenizer.FromGGUF(m)
		if err != nil {
			if !errors.Is(err, tokenizer.ErrInvalid) && !errors.Is(err, tokenizer.ErrUnsupported) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		ids := tok.Encode(text, true)
		for _, id := range ids {
			if _, ok := tok.Token(id); !ok {
				t.Errorf("id %d is not in the vocabulary", id)
			}
		}
		stream := tok.NewStream(true)
		var streamed strings.Builder
		for _, id := range ids {
			streamed.WriteString(stream.Push(id))
		}
		streamed.WriteString(stream.Flush())
		if want := tok.Decode(ids, true); streamed.String() != want || !utf8.ValidString(want) {
			t.Errorf("stream gave %q, Decode %q", streamed.String(), want)
		}
		if other, err := tokenizer.WithPreTokenizer(m, "default"); err == nil {
			if _, err := tokenizer.FromGGUF(other); err != nil {
				t.Errorf("with another pre-tokenizer: %v", err)
			}
		}
	})
}

// TestPreTokenizerChoice checks the choice of pre-tokenizers for files that name none or a wrong
// one, and for files that need none.
func TestPreTokenizerChoice(t *testing.T) {
	m := byteMetadata("llama-bpe")
	if tok := fromMetadata(t, m); tok.Guessed() || tok.Name() != "llama-bpe" {
		t.Errorf("guessed is %t of %s", tok.Guessed(), tok.Name())
	}
	delete(m, "tokenizer.ggml.pre")
	if tok := fromMetadata(t, m); !tok.Guessed() || tok.Name() != "default" {
		t.Errorf("guessed is %t of %s", tok.Guessed(), tok.Name())
	}
	m["tokenizer.ggml.pre"] = "lama-bpe"
	_, err := tokenizer.FromGGUF(m)
	for _, want := range []string{"tokenizer.ggml.pre", `"lama-bpe"`, "llama-bpe"} {
		if !errors.Is(err, tokenizer.ErrPreTokenizer) || !errors.Is(err, tokenizer.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that mentions %s", err, want)
		}
	}
	for _, name := range []string{"qwen2", "gpt-2"} {
		chosen, err := tokenizer.WithPreTokenizer(m, name)
		if err != nil {
			t.Fatal(err)
		}
		if tok := fromMetadata(t, chosen); tok.Guessed() || tok.Name() != name {
			t.Errorf("chose %s, got %s", name, tok.Name())
		}
	}
	if _, err := tokenizer.WithPreTokenizer(m, "qwen-2"); !errors.Is(err, tokenizer.ErrPreTokenizer) || !strings.Contains(err.Error(), " qwen2,") {
		t.Errorf("got error %v, want one that mentions qwen2", err)
	}
	for _, name := range []string{"qwen2", "odd"} {
		if _, err := tokenizer.WithPreTokenizer(spmMetadata("a"), name); !errors.Is(err, tokenizer.ErrInvalid) || !strings.Contains(err.Error(), "none to choose") {
			t.Errorf("llama: got error %v", err)
		}
	}
	if names := tokenizer.PreTokenizers(); !slices.IsSorted(names) || !slices.Contains(names, "qwen2") {
		t.Errorf("names are %v", names)
	}
}

// TestRefusedGGUFModels checks that the error for an unsupported model names it and the supported
// ones.
func TestRefusedGGUFModels(t *testing.T) {
	for _, model := range []string{"rwkv", "plamo2", "hybriddna", "whitespace", "none", "no_vocab"} {
		_, err := tokenizer.FromGGUF(metadata{"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": []string{"a"}})
		if !errors.Is(err, tokenizer.ErrUnsupported) || !strings.Contains(err.Error(), `"`+model+`"`) || !strings.Contains(err.Error(), "gemma4, gpt2") {
			t.Errorf("%s: got error %v", model, err)
		}
	}
}

// TestGGUFControlTokens checks that tokens with known spellings are control tokens, whatever their
// type, and that those that mark an end are end tokens.
func TestGGUFControlTokens(t *testing.T) {
	tokens := []string{"a", "<|im_end|>", "<|fim_middle|>", "<|file_sep|>", "</s>", "<|end|>", "<u>"}
	m := metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type": []int64{1, 1, 4, 1, 1, 3, 4}, "tokenizer.ggml.merges": []string{},
	}
	check := func(ends []int32, special ...int32) {
		t.Helper()
		tok := fromMetadata(t, m)
		if got := tok.EndTokens(); !slices.Equal(got, ends) {
			t.Errorf("%v end an answer, want %v", got, ends)
		}
		for id, text := range tokens {
			want := slices.Contains(special, int32(id))
			if got := tok.IsSpecial(int32(id)); got != want {
				t.Errorf("%s: special is %t", text, got)
			}
			typed := tok.EncodeSpans([]tokenizer.Span{{Text: text}}, false)
			if got := slices.Contains(typed, int32(id)); got == want {
				t.Errorf("%s: typed it becomes %v", text, typed)
			}
		}
	}
	check([]int32{1, 3, 4, 5}, 1, 2, 3, 4, 5)
	tokens = append(tokens, "<|return|>", "<|call|>")
	m["tokenizer.ggml.tokens"] = tokens
	check([]int32{1, 3, 4, 7, 8}, 1, 2, 3, 4, 5, 7, 8)
	m["tokenizer.ggml.tokens"] = []string{"a", "</s>", "<|tool_response>"}
	if tok := fromMetadata(t, m); tok.IsSpecial(1) || !slices.Equal(tok.EndTokens(), []int32{2}) {
		t.Errorf("%v end an answer; </s> is special: %t", tok.EndTokens(), tok.IsSpecial(1))
	}
}
