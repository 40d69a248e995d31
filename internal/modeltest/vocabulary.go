package modeltest

import (
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

// SpecialTokens are the special tokens of the models, the last of their
// vocabulary.
var SpecialTokens = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// merges are the pairs that the tokenizer joins, in the order of their rank. Ġ
// is the space.
var merges = []string{"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "i n", "e r", "Ġ t", "Ġt he"}

// byteAlphabet is how GPT-2's tokenizer writes the 256 bytes: printable
// characters of Latin-1 as themselves, the others from U+0100 on.
func byteAlphabet() []string {
	var printable, others []string
	next := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' {
			printable = append(printable, string(b))
		} else {
			others = append(others, string(next))
			next++
		}
	}
	return append(printable, others...)
}

// vocabulary is the tokens by id.
func vocabulary() []string {
	all := byteAlphabet()
	for _, m := range merges {
		all = append(all, strings.ReplaceAll(m, " ", ""))
	}
	return append(all, SpecialTokens...)
}

func (s *shape) tokenID(tb testing.TB, token string) int {
	tb.Helper()
	id := slices.Index(s.vocabulary, token)
	if id < 0 {
		tb.Fatalf("modeltest: no token %q", token)
	}
	return id
}

// The kinds of token in GGUF.
const (
	ggufNormal  = int32(1)
	ggufControl = int32(3)
)

func (s *shape) ggufMetadata(tb testing.TB) []modelfile.KeyValue {
	tb.Helper()
	tokens := s.vocabulary
	types := make([]int32, len(tokens))
	for i := range types {
		types[i] = ggufNormal
		if i >= len(tokens)-len(SpecialTokens) {
			types[i] = ggufControl
		}
	}
	a := s.architecture + "."
	meta := []modelfile.KeyValue{
		{Key: "general.architecture", Value: s.architecture},
		{Key: "general.name", Value: "test model"},
		{Key: a + "block_count", Value: uint32(s.layers)},
		{Key: a + "context_length", Value: uint32(s.context)},
		{Key: a + "embedding_length", Value: uint32(s.hidden)},
		{Key: a + "feed_forward_length", Value: uint32(s.ffn)},
		{Key: a + "attention.head_count", Value: uint32(s.heads)},
		{Key: a + "attention.head_count_kv", Value: uint32(s.kvHeads)},
		{Key: a + "attention.key_length", Value: uint32(s.head)},
		{Key: a + "attention.value_length", Value: uint32(s.head)},
		{Key: a + "attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: a + "rope.dimension_count", Value: uint32(s.head)},
		{Key: a + "rope.freq_base", Value: float32(10000)},
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: "gpt-2"},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: s.merges},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(s.tokenID(tb, "<|endoftext|>"))},
		{Key: "tokenizer.ggml.add_bos_token", Value: s.addBOS},
	}
	for i, e := range s.ends {
		key := []string{"eos", "eot", "eom"}[i]
		meta = append(meta, modelfile.KeyValue{Key: "tokenizer.ggml." + key + "_token_id", Value: uint32(s.tokenID(tb, e))})
	}
	if s.window > 0 {
		meta = append(meta, modelfile.KeyValue{Key: a + "attention.sliding_window", Value: uint32(s.window)})
	}
	if s.template != "" {
		meta = append(meta, modelfile.KeyValue{Key: "tokenizer.chat_template", Value: s.template})
	}
	for _, kv := range s.metadata {
		meta = slices.DeleteFunc(meta, func(old modelfile.KeyValue) bool { return old.Key == kv.Key })
		meta = append(meta, kv)
	}
	return meta
}

// tokenizerJSON is the same tokenizer as Hugging Face's library writes it.
func (s *shape) tokenizerJSON(tb testing.TB) any {
	tb.Helper()
	vocab := map[string]int{}
	var added []map[string]any
	for id, t := range s.vocabulary {
		if slices.Contains(SpecialTokens, t) {
			added = append(added, map[string]any{
				"id": id, "content": t, "special": true,
				"lstrip": false, "rstrip": false, "single_word": false, "normalized": false,
			})
			continue
		}
		vocab[t] = id
	}
	byteLevel := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	var post any = byteLevel
	if s.addBOS {
		const bos = "<|endoftext|>"
		sequence := func(id string) map[string]any {
			return map[string]any{"Sequence": map[string]any{"id": id, "type_id": 0}}
		}
		first := map[string]any{"SpecialToken": map[string]any{"id": bos, "type_id": 0}}
		post = map[string]any{
			"type": "TemplateProcessing", "single": []any{first, sequence("A")},
			"pair":           []any{first, sequence("A"), sequence("B")},
			"special_tokens": map[string]any{bos: map[string]any{"id": bos, "ids": []int{s.tokenID(tb, bos)}, "tokens": []string{bos}}},
		}
	}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": byteLevel, "post_processor": post, "decoder": byteLevel,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": s.merges,
		},
	}
}
