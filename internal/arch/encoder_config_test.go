package arch_test

import (
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// A context is no longer than the table of positions; for RoBERTa, without the unused first rows.
func TestEncoderContext(t *testing.T) {
	for name, test := range map[string]struct {
		m    tiny
		want int
	}{
		"BERT":          {goldenModel(t, "bert"), 64},
		"a short table": {goldenModel(t, "bert").with(nil, map[string][]int{"embeddings.position_embeddings.weight": {50, 32}}), 50},
		"XLM-RoBERTa":   {goldenModel(t, "xlm-roberta-rank"), 64},
		"padding of 5":  {goldenModel(t, "xlm-roberta-rank").with(map[string]any{"pad_token_id": 5}, nil), 60},
		"ModernBERT":    {goldenModel(t, "modernbert"), 64},
	} {
		m, err := buildFile(t, test.m.write(t))
		if err != nil || m.Spec.Context != test.want {
			t.Errorf("%s: %v, want a context of %d", name, err, test.want)
		}
	}
}

// Unsupported values in an encoder's configuration are errors.
func TestEncodersRefuse(t *testing.T) {
	bert := func(key string, value any) tiny { return goldenModel(t, "bert").with(map[string]any{key: value}, nil) }
	modern := func(key string, value any) tiny {
		return goldenModel(t, "modernbert-rank").with(map[string]any{key: value}, nil)
	}
	roberta := func(pad int) tiny {
		return goldenModel(t, "xlm-roberta-rank").with(map[string]any{"pad_token_id": pad}, nil)
	}
	without := func(m tiny, name string) tiny { return m.with(nil, map[string][]int{name: nil}) }
	tinyErrors(t, []refusal{
		{"relative positions", bert("position_embedding_type", "relative_key"), arch.ErrConfig, "relative_key"},
		{"a decoder", bert("is_decoder", true), arch.ErrConfig, "is_decoder"},
		{"an activation", bert("hidden_act", "gelou"), arch.ErrConfig, "gelu"},
		{"too many heads", bert("num_attention_heads", 33), arch.ErrConfig, "33 heads"},
		{"a head that nobody asked for", goldenModel(t, "bert").with(nil, map[string][]int{"classifier.weight": {2, 32}, "classifier.bias": {2}}), arch.ErrTensor, "classifier"},
		{"no head", without(goldenModel(t, "bert-rank"), "classifier.weight"), arch.ErrTensor, "classifier.weight is missing"},
		{"no pooler", without(goldenModel(t, "bert-rank"), "bert.pooler.dense.weight"), arch.ErrTensor, "pooler.dense.weight is missing"},
		{"no types", without(goldenModel(t, "bert"), "embeddings.token_type_embeddings.weight"), arch.ErrTensor, "token_type_embeddings.weight is missing"},
		{"causal", goldenModel(t, "bert-gguf").with(map[string]any{"attention.causal": true}, nil), arch.ErrConfig, "bert.attention.causal is true"},
		{"no position is left", roberta(70), arch.ErrConfig, "no position"},
		{"no row is left", roberta(65).with(map[string]any{"max_position_embeddings": 100}, nil), arch.ErrTensor, "more than 66 rows"},
		{"the last token for a head", modern("classifier_pooling", "last"), arch.ErrConfig, `"last"`},
		{"too few kinds of layers", modern("layer_types", []string{"full_attention"}), arch.ErrConfig, "1 layers of 2"},
		{"norms without biases", modern("norm_bias", true), arch.ErrTensor, "norm.bias is missing"},
		{"a head without a bias", modern("classifier_bias", true), arch.ErrTensor, "head.dense.bias is missing"},
		{"a norm in the first layer", goldenModel(t, "modernbert").with(nil, map[string][]int{"layers.0.attn_norm.weight": {32}}), arch.ErrTensor, "layers.0.attn_norm.weight"},
	})
}
