package tokenizer_test

import (
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// TestInfill checks that the tokens for infilling are those that the file names, the newer keys
// first, or those of one family's spelling.
func TestInfill(t *testing.T) {
	qwen := []string{"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|repo_name|>", "<|file_sep|>"}
	for name, test := range map[string]struct {
		control []string
		named   metadata
		want    tokenizer.Infill
		none    bool
	}{
		"a family":        {qwen, nil, tokenizer.Infill{Prefix: 256, Suffix: 258, Middle: 257, Repository: 259, Separator: 260}, false},
		"without files":   {qwen[:3], nil, tokenizer.Infill{Prefix: 256, Suffix: 258, Middle: 257, Repository: -1, Separator: -1}, false},
		"two of three":    {qwen[:2], nil, tokenizer.Infill{}, true},
		"of two families": {[]string{"<|fim_prefix|>", "<fim_suffix>", "<fim_middle>"}, nil, tokenizer.Infill{}, true},
		"named": {[]string{"a", "b", "c", "d"}, metadata{
			"tokenizer.ggml.fim_pre_token_id": int64(257), "tokenizer.ggml.prefix_token_id": int64(3),
			"tokenizer.ggml.suffix_token_id": int64(258), "tokenizer.ggml.fim_mid_token_id": int64(259),
		}, tokenizer.Infill{Prefix: 257, Suffix: 258, Middle: 259, Repository: -1, Separator: -1}, false},
		"outside": {nil, metadata{
			"tokenizer.ggml.fim_pre_token_id": int64(1000), "tokenizer.ggml.fim_suf_token_id": int64(1), "tokenizer.ggml.fim_mid_token_id": int64(-2),
		}, tokenizer.Infill{}, true},
	} {
		m := byteMetadata("gpt-2", test.control...)
		for key, v := range test.named {
			m[key] = v
		}
		if got, ok := fromMetadata(t, m).Infill(); got != test.want || ok == test.none {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, test.want)
		}
	}
}
