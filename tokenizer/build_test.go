package tokenizer_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/realizar/realizar/tokenizer"
)

// A fataler is the part of a test, or of a property check, that helpers need.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// object is a JSON object.
type object = map[string]any

// byteSpelling returns how a byte-level vocabulary spells b.
func byteSpelling(b byte) string {
	visible := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xA1 && b != 0xAD }
	if visible(int(b)) {
		return string(rune(b))
	}
	r := rune(256)
	for other := range int(b) {
		if !visible(other) {
			r++
		}
	}
	return string(r)
}

// byteVocab returns a vocabulary in which each byte has its value as id, followed by the results of
// merges.
func byteVocab(merges ...[2]string) object {
	vocab := object{}
	for b := range 256 {
		vocab[byteSpelling(byte(b))] = b
	}
	for _, m := range merges {
		if _, ok := vocab[m[0]+m[1]]; !ok {
			vocab[m[0]+m[1]] = len(vocab)
		}
	}
	return vocab
}

// gpt2Splitter is the pre-tokenizer of GPT-2.
var gpt2Splitter = object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}

// byteLevel returns a tokenizer.json with GPT-2's pre-tokenizer.
func byteLevel(added []object, merges ...[2]string) object {
	return object{
		"version": "1.0", "added_tokens": added,
		"pre_tokenizer": gpt2Splitter, "decoder": object{"type": "ByteLevel"},
		"model": object{"type": "BPE", "vocab": byteVocab(merges...), "merges": merges},
	}
}

// added returns an added token. options are the names of the fields that are true.
func added(content string, options ...string) object {
	token := object{"id": 0, "content": content}
	for _, o := range options {
		token[o] = true
	}
	return token
}

// sentencePiece returns a tokenizer.json like that of Llama 2: byte fallback, and ▁ for a space.
func sentencePiece(normalizer any, added []object, pieces ...string) object {
	vocab := object{"<unk>": 0, "<s>": 1, "</s>": 2}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = len(vocab)
	}
	merges := [][2]string{}
	for _, p := range pieces {
		vocab[p] = len(vocab)
	}
	for _, p := range pieces {
		for i := range p {
			_, left := vocab[p[:i]]
			_, right := vocab[p[i:]]
			if left && right {
				merges = append(merges, [2]string{p[:i], p[i:]})
			}
		}
	}
	return object{
		"added_tokens": added, "normalizer": normalizer,
		"decoder": object{"type": "Sequence", "decoders": []object{
			{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
			{"type": "ByteFallback"}, {"type": "Fuse"},
			{"type": "Strip", "content": " ", "start": 1, "stop": 0},
		}},
		"model": object{
			"type": "BPE", "vocab": vocab, "merges": merges,
			"unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
		},
	}
}

// llamaNormalizer puts ▁ before a text and replaces its spaces by ▁.
var llamaNormalizer = object{"type": "Sequence", "normalizers": []object{
	{"type": "Prepend", "prepend": "▁"},
	{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
}}

// fromObject returns the tokenizer of a tokenizer.json and a config, which may be nil.
func fromObject(t fataler, file, config object) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.FromJSON(marshal(t, file), marshal(t, config))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func marshal(t fataler, o object) []byte {
	t.Helper()
	if o == nil {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// metadata is the metadata of a GGUF file.
type metadata map[string]any

func value[T any](m metadata, key string) (T, bool) {
	v, ok := m[key].(T)
	return v, ok
}

func (m metadata) String(key string) (string, bool)    { return value[string](m, key) }
func (m metadata) Int(key string) (int64, bool)        { return value[int64](m, key) }
func (m metadata) Bool(key string) (bool, bool)        { return value[bool](m, key) }
func (m metadata) Strings(key string) ([]string, bool) { return value[[]string](m, key) }
func (m metadata) Ints(key string) ([]int64, bool)     { return value[[]int64](m, key) }
func (m metadata) Floats(key string) ([]float64, bool) { return value[[]float64](m, key) }

// spmMetadata returns GGUF metadata of a SentencePiece vocabulary: <unk>, <s>, </s>, the bytes, and
// pieces with descending scores.
func spmMetadata(pieces ...string) metadata {
	tokens := []string{"<unk>", "<s>", "</s>"}
	types := []int64{2, 3, 3}
	for b := range 256 {
		tokens, types = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(types, 6)
	}
	scores := make([]float64, len(tokens))
	for i, p := range pieces {
		tokens, types, scores = append(tokens, p), append(types, 1), append(scores, -float64(i+1))
	}
	return metadata{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.scores": scores,
		"tokenizer.ggml.bos_token_id": int64(1), "tokenizer.ggml.eos_token_id": int64(2),
		"tokenizer.ggml.unknown_token_id": int64(0),
	}
}

// byteMetadata returns GGUF metadata of a byte-level vocabulary with the given control tokens.
func byteMetadata(pre string, control ...string) metadata {
	var tokens []string
	var types []int64
	for b := range 256 {
		tokens, types = append(tokens, byteSpelling(byte(b))), append(types, 1)
	}
	for _, c := range control {
		tokens, types = append(tokens, c), append(types, 3)
	}
	return metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
		"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.merges": []string{},
	}
}

// fromMetadata returns the tokenizer of GGUF metadata.
func fromMetadata(t fataler, m tokenizer.Metadata) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.FromGGUF(m)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// spellings returns the tokens of ids, separated by |.
func spellings(tok *tokenizer.Tokenizer, ids []int32) string {
	var tokens []string
	for _, id := range ids {
		text, ok := tok.Token(id)
		if !ok {
			text = fmt.Sprintf("[%d]", id)
		}
		tokens = append(tokens, text)
	}
	return strings.Join(tokens, "|")
}

// tokenizers returns small tokenizers of every kind, by name.
func tokenizers(t fataler) map[string]*tokenizer.Tokenizer {
	t.Helper()
	chat := []object{
		added("<|im_start|>", "special"), added("<|im_end|>", "special"), added("<tool>", "normalized"),
		added("[L]", "special", "lstrip"), added("[R]", "special", "rstrip"), added("word", "single_word"),
	}
	words := [][2]string{{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"Ġ", "he"}, {"i", "m"}, {"<", "|"}, {"|", ">"}}
	composed := byteLevel(chat, words...)
	composed["normalizer"] = object{"type": "NFC"}
	pieces := []string{"▁", "h", "e", "l", "o", "he", "ll", "hell", "▁hell", "<", "/", "s", ">", "</", "s>", "é", "世"}
	llama := []object{
		added("<unk>", "special"), added("<s>", "special", "normalized"), added("</s>", "special"),
		added("<tool>", "normalized"),
	}
	return map[string]*tokenizer.Tokenizer{
		"byte-level":     fromObject(t, byteLevel(chat, words...), nil),
		"byte-level NFC": fromObject(t, composed, nil),
		"llama":          fromObject(t, sentencePiece(llamaNormalizer, llama, pieces...), nil),
		"no decoder": fromObject(t, object{
			"model": object{"type": "BPE", "vocab": object{"a": 0, "b": 1, "ab": 2}, "merges": []string{"a b"}},
		}, nil),
		"metaspace": fromObject(t, object{
			"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
			"decoder":       object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
			"model": object{
				"type": "BPE", "vocab": object{"▁": 0, "a": 1, "b": 2, "▁a": 3}, "merges": []string{"▁ a"},
			},
		}, nil),
		"Unigram": fromObject(t, object{
			"added_tokens":  []object{added("<s>", "special"), added("<unk>", "special")},
			"normalizer":    object{"type": "Precompiled", "precompiled_charsmap": charsmap},
			"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁"}, "decoder": object{"type": "Metaspace", "replacement": "▁"},
			"model": unigramFile(false, scoredTokens{{"<unk>", 0.0}, {"<s>", 0.0}, {"▁", -1.0}, {"he", -2.0}, {"▁he", -2.5}, {"l", -3.0}, {"ll", -3.5}, {"ce", -2.0}})["model"],
		}, nil),
		"WordPiece": fromObject(t, object{
			"added_tokens":  []object{added("[UNK]", "special"), added("<s>", "special")},
			"normalizer":    bertNormalizer(true, true, true, nil),
			"pre_tokenizer": object{"type": "BertPreTokenizer"}, "decoder": object{"type": "WordPiece", "prefix": "##", "cleanup": true},
			"model": wordPieceFile(100, "[UNK]", "<s>", "he", "##ll", "##o", ",", "it", "'", "s", "<", ">", "世")["model"],
		}, nil),
		"GGUF llama":      fromMetadata(t, spmMetadata(pieces...)),
		"GGUF byte-level": fromMetadata(t, byteMetadata("llama-bpe", "<|im_start|>", "<|im_end|>")),
	}
}
