package tokenizer_test

import (
	"slices"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// t5Metadata returns GGUF metadata of T5: <pad>, </s>, <unk> and pieces with scores, the last of
// which is user-defined.
func t5Metadata(pieces []string, scores []float64) metadata {
	types := []int64{3, 3, 2}
	for range pieces {
		types = append(types, 1)
	}
	types[len(types)-1] = 4
	return metadata{
		"tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": append([]string{"<pad>", "</s>", "<unk>"}, pieces...),
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.scores": append([]float64{0, 0, 0}, scores...),
		"tokenizer.ggml.add_space_prefix": true, "tokenizer.ggml.remove_extra_whitespaces": true,
	}
}

func TestGGUFUnigram(t *testing.T) {
	m := t5Metadata([]string{"▁", "a", "b", "▁ab", "c", "e", "[u]"}, []float64{-2, -3, -3, -4, -3, -3, -9})
	chars := make([]int64, len(charsmap))
	for i, b := range charsmap {
		chars[i] = int64(int8(b))
	}
	tok := fromMetadata(t, m)
	for _, test := range []struct{ text, want string }{
		{"ab", "▁ab"},
		{"  ab   ab  ", "▁ab|▁ab"},
		{"axyb", "▁|a|<unk>|b"},
		{"ab[u]ab", "▁ab|[u]|▁ab"},
		{"   ", ""},
	} {
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%q: got %s, want %s", test.text, got, test.want)
		}
	}
	ids := tok.Encode("ab b", true)
	if got, want := spellings(tok, ids), "▁ab|▁|b|</s>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := tok.Decode(ids, true); got != "ab b" {
		t.Errorf("decoded %q", got)
	}
	m["tokenizer.ggml.precompiled_charsmap"] = chars
	m["tokenizer.ggml.remove_extra_whitespaces"] = false
	tok = fromMetadata(t, m)
	if got, want := spellings(tok, tok.Encode(" ab", false)), "▁|▁|c|e|b"; got != want {
		t.Errorf("with a charsmap: got %s, want %s", got, want)
	}
}

func TestGGUFWordPiece(t *testing.T) {
	tokens := slices.Repeat([]string{"[PAD]"}, 104)
	copy(tokens[100:], []string{"[UNK]", "[CLS]", "[SEP]", "[MASK]"})
	types := slices.Repeat([]int64{3}, 104)
	for _, piece := range []string{"▁un", "aff", "able", "▁e", "▁世", "▁!"} {
		tokens, types = append(tokens, piece), append(types, 1)
	}
	m := metadata{"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
	tok := fromMetadata(t, m)
	ids := tok.Encode("UNaffable É!世x[MASK]un", true)
	if got, want := spellings(tok, ids), "[CLS]|▁un|aff|able|▁e|▁!|▁世|[UNK]|[MASK]|▁un|[SEP]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := tok.Decode(ids[1:6], true), "unaffable e !"; got != want {
		t.Errorf("decoded %q, want %q", got, want)
	}
	m["tokenizer.ggml.normalizer.lowercase"] = false
	tok = fromMetadata(t, m)
	if got, want := spellings(tok, tok.Encode("un É e", false)), "▁un|[UNK]|▁e"; got != want {
		t.Errorf("with case: got %s, want %s", got, want)
	}
}

// TestGGUFWordPieceText checks that text is normalized as in llama.cpp, which keeps only the first
// character of a decomposition.
func TestGGUFWordPieceText(t *testing.T) {
	m := metadata{
		"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": []string{"[UNK]", "[CLS]", "[SEP]", "▁ᄀ", "▁~", "▁i", "▁é", "▁e", "▁ab", "▁$"},
		"tokenizer.ggml.token_type": []int64{2, 3, 3, 1, 1, 1, 1, 1, 1, 1}, "tokenizer.ggml.unknown_token_id": int64(0),
		"tokenizer.ggml.bos_token_id": int64(1), "tokenizer.ggml.seperator_token_id": int64(2),
	}
	for _, test := range []struct{ text, want string }{
		{"각 İ É a\u200db~$", "▁ᄀ|▁i|▁e|▁ab|▁~|▁$"},
		{"a\u0301b \U00013460", "▁ab|[UNK]"},
	} {
		tok := fromMetadata(t, m)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%q: got %s, want %s", test.text, got, test.want)
		}
	}
	m["tokenizer.ggml.normalizer.strip_accents"] = false
	tok := fromMetadata(t, m)
	if got, want := spellings(tok, tok.Encode("É", false)), "▁é"; got != want {
		t.Errorf("with accents: got %s, want %s", got, want)
	}
}

// TestGGUFCutVocabulary checks that merges of tokens that the vocabulary lacks work as in
// llama.cpp, and that what remains of them becomes bytes.
func TestGGUFCutVocabulary(t *testing.T) {
	m := metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
		"tokenizer.ggml.tokens":     []string{"a", "b", "c", "abc", "<s>", "Ġa"},
		"tokenizer.ggml.token_type": []int64{1, 1, 1, 1, 3, 1},
		"tokenizer.ggml.merges":     []string{"a b", "ab c", "Ġ a", "< s", "<s >", "b c"},
	}
	check := func(text, want string) {
		t.Helper()
		tok := fromMetadata(t, m)
		ids := tok.EncodeSpans([]tokenizer.Span{{Text: text}}, false)
		if got := spellings(tok, ids); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	check("abc", "abc")
	check("abb", "a|b|b")
	check("b a", "b|Ġa")
	check("b b", "b|b")
	check("<s>", "")
	m["tokenizer.ggml.model"], m["tokenizer.ggml.bos_token_id"] = "gemma4", int64(0)
	m["tokenizer.ggml.tokens"] = []string{"<bos>", "<0x61>", "b", "abb", "<0xC3>", "<0xA9>", "<0x62>"}
	m["tokenizer.ggml.token_type"] = []int64{3, 6, 1, 1, 6, 6, 6}
	m["tokenizer.ggml.merges"] = []string{"a b", "ab b", "é b"}
	check("abb", "abb")
	check("ab", "<0x61>|<0x62>")
	check("é", "<0xC3>|<0xA9>")
}

func TestGGUFGemma4(t *testing.T) {
	tokens := []string{"<bos>", "▁", "a", "\n", "\n\n", "▁a"}
	types := []int64{3, 1, 1, 1, 1, 1}
	for _, b := range []string{"<0xC3>", "<0xA9>"} {
		tokens, types = append(tokens, b), append(types, 6)
	}
	tok := fromMetadata(t, metadata{
		"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.merges": []string{"▁ a"}, "tokenizer.ggml.bos_token_id": int64(0),
		"tokenizer.ggml.add_bos_token": false, // ignored
	})
	ids := tok.Encode("a a\n\né", true)
	if got, want := spellings(tok, ids), "<bos>|a|▁a|\n\n|<0xC3>|<0xA9>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tok.Decode(ids, true); got != "a a\n\né" {
		t.Errorf("decoded %q", got)
	}
}
