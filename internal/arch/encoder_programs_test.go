package arch_test

import (
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// Encoders of two layers, 32 wide, with four heads of eight and 40 tokens.

// bertLayers are the tensors of a model whose names begin with base.
func bertLayers(base string, types, positions int) map[string][]int {
	tensors := map[string][]int{
		"embeddings.word_embeddings.weight": {40, 32}, "embeddings.token_type_embeddings.weight": {types, 32}, "embeddings.position_embeddings.weight": {positions, 32},
		"embeddings.LayerNorm.weight": {32}, "embeddings.LayerNorm.bias": {32}, "embeddings.position_ids": {1, positions},
		"encoder.layer.#.attention.output.LayerNorm.weight": {32}, "encoder.layer.#.attention.output.LayerNorm.bias": {32},
		"encoder.layer.#.output.LayerNorm.weight": {32}, "encoder.layer.#.output.LayerNorm.bias": {32},
	}
	for name, shape := range map[string][]int{
		"attention.self.query": {32, 32}, "attention.self.key": {32, 32}, "attention.self.value": {32, 32}, "attention.output.dense": {32, 32},
		"intermediate.dense": {48, 32}, "output.dense": {32, 48},
	} {
		tensors["encoder.layer.#."+name+".weight"], tensors["encoder.layer.#."+name+".bias"] = shape, shape[:1]
	}
	out := map[string][]int{}
	for name, shape := range tensors {
		out[base+name] = shape
	}
	return out
}

// head is a product of a head, with its bias.
func head(name string, rows int) map[string][]int {
	return map[string][]int{name + ".weight": {rows, 32}, name + ".bias": {rows}}
}

func bertHub() tiny {
	return tiny{
		config: map[string]any{
			"architectures": []string{"BertModel"}, "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48,
			"max_position_embeddings": 64, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "type_vocab_size": 2,
		},
		tensors: bertLayers("", 2, 64),
	}.with(nil, head("pooler.dense", 32))
}

func bertRank() tiny {
	m := bertHub().with(map[string]any{"architectures": []string{"BertForSequenceClassification"}}, nil)
	m.tensors = bertLayers("bert.", 2, 64)
	return m.with(nil, head("bert.pooler.dense", 32)).with(nil, head("classifier", 3))
}

func xlmRobertaRank() tiny {
	m := bertHub().with(map[string]any{"architectures": []string{"XLMRobertaForSequenceClassification"}, "max_position_embeddings": 66, "pad_token_id": 1, "layer_norm_eps": 1e-5}, nil)
	m.tensors = bertLayers("roberta.", 1, 66)
	return m.with(nil, head("classifier.dense", 32)).with(nil, head("classifier.out_proj", 1))
}

func bertGGUF() tiny {
	return layerNormGGUF("bert", map[string]any{"attention.causal": false, "pooling_type": 2}, biases(map[string][]int{
		"output_norm.weight": nil, "output_norm.bias": nil, "blk.#.attn_norm.weight": nil, "blk.#.attn_norm.bias": nil, "blk.#.ffn_norm.weight": nil, "blk.#.ffn_norm.bias": nil,
		"token_types.weight": {2, 32}, "position_embd.weight": {64, 32}, "token_embd_norm.weight": {32}, "token_embd_norm.bias": {32},
		"blk.#.attn_q.weight": {32, 32}, "blk.#.attn_k.weight": {32, 32}, "blk.#.attn_v.weight": {32, 32},
		"blk.#.attn_output_norm.weight": {32}, "blk.#.attn_output_norm.bias": {32}, "blk.#.layer_output_norm.weight": {32}, "blk.#.layer_output_norm.bias": {32},
	}))
}

func modernHub() tiny {
	return tiny{
		config: map[string]any{
			"architectures": []string{"ModernBertModel"}, "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48,
			"max_position_embeddings": 64, "norm_eps": 1e-5, "hidden_activation": "gelu", "local_attention": 16, "global_attn_every_n_layers": 2,
			"global_rope_theta": 160000.0, "local_rope_theta": 10000.0,
		},
		tensors: map[string][]int{
			"embeddings.tok_embeddings.weight": {40, 32}, "embeddings.norm.weight": {32}, "final_norm.weight": {32},
			"layers.1.attn_norm.weight": {32}, "layers.#.attn.Wqkv.weight": {96, 32}, "layers.#.attn.Wo.weight": {32, 32},
			"layers.#.mlp_norm.weight": {32}, "layers.#.mlp.Wi.weight": {96, 32}, "layers.#.mlp.Wo.weight": {32, 48},
		},
	}
}

func modernRank() tiny {
	m := modernHub()
	tensors := map[string][]int{"head.dense.weight": {32, 32}, "head.norm.weight": {32}, "classifier.weight": {1, 32}, "classifier.bias": {1}}
	for name, shape := range m.tensors {
		tensors["model."+name] = shape
	}
	m.tensors = tensors
	return m.with(map[string]any{
		"architectures": []string{"ModernBertForSequenceClassification"}, "classifier_pooling": "mean",
		"global_attn_every_n_layers": nil, "global_rope_theta": nil, "local_rope_theta": nil,
		"layer_types": []string{"sliding_attention", "full_attention"},
		"rope_parameters": map[string]any{
			"full_attention":    map[string]any{"rope_type": "default", "rope_theta": 80000.0},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": 5000.0},
		},
	}, nil)
}

func modernGGUF() tiny {
	return layerNormGGUF("modern-bert", map[string]any{
		"attention.sliding_window": 16, "attention.sliding_window_pattern": 2, "rope.freq_base": 160000.0, "rope.freq_base_swa": 10000.0, "rope.scaling.type": "none",
	}, map[string][]int{
		"output_norm.bias": nil, "blk.#.attn_norm.bias": nil, "blk.#.ffn_norm.bias": nil, "blk.0.attn_norm.weight": nil,
		"token_embd_norm.weight": {32}, "blk.#.attn_qkv.weight": {96, 32}, "blk.#.ffn_up.weight": {96, 32},
	})
}

func TestEncoderPrograms(t *testing.T) {
	tinyPrograms(t, map[string]tiny{
		"bert": bertHub(), "bert-rank": bertRank(), "bert-gguf": bertGGUF(), "xlm-roberta-rank": xlmRobertaRank(),
		"modernbert": modernHub(), "modernbert-rank": modernRank(), "modernbert-gguf": modernGGUF(),
	})
}

// A context is no longer than the table of positions, and of RoBERTa begins after the
// rows that are not used.
func TestEncoderContext(t *testing.T) {
	for name, test := range map[string]struct {
		m    tiny
		want int
	}{
		"BERT":          {bertHub(), 64},
		"a short table": {bertHub().with(nil, map[string][]int{"embeddings.position_embeddings.weight": {50, 32}}), 50},
		"XLM-RoBERTa":   {xlmRobertaRank(), 64},
		"padding of 5":  {xlmRobertaRank().with(map[string]any{"pad_token_id": 5}, nil), 60},
		"ModernBERT":    {modernHub(), 64},
	} {
		m, err := buildFile(t, test.m.write(t))
		if err != nil || m.Spec.Context != test.want {
			t.Errorf("%s: %v, want a context of %d", name, err, test.want)
		}
	}
}

// What an encoder's configuration says that there is no such thing for is an error.
func TestEncodersRefuse(t *testing.T) {
	bert := func(key string, value any) tiny { return bertHub().with(map[string]any{key: value}, nil) }
	modern := func(key string, value any) tiny { return modernRank().with(map[string]any{key: value}, nil) }
	roberta := func(pad int) tiny { return xlmRobertaRank().with(map[string]any{"pad_token_id": pad}, nil) }
	without := func(m tiny, name string) tiny { return m.with(nil, map[string][]int{name: nil}) }
	tinyErrors(t, []refusal{
		{"relative positions", bert("position_embedding_type", "relative_key"), arch.ErrConfig, "relative_key"},
		{"a decoder", bert("is_decoder", true), arch.ErrConfig, "is_decoder"},
		{"an activation", bert("hidden_act", "gelou"), arch.ErrConfig, "gelu"},
		{"too many heads", bert("num_attention_heads", 33), arch.ErrConfig, "33 heads"},
		{"a head that nobody asked for", bertHub().with(nil, head("classifier", 2)), arch.ErrTensor, "classifier"},
		{"no head", without(bertRank(), "classifier.weight"), arch.ErrTensor, "classifier.weight is missing"},
		{"no pooler", without(bertRank(), "bert.pooler.dense.weight"), arch.ErrTensor, "pooler.dense.weight is missing"},
		{"no types", without(bertHub(), "embeddings.token_type_embeddings.weight"), arch.ErrTensor, "token_type_embeddings.weight is missing"},
		{"causal", bertGGUF().with(map[string]any{"attention.causal": true}, nil), arch.ErrConfig, "bert.attention.causal is true"},
		{"no position is left", roberta(70), arch.ErrConfig, "no position"},
		{"no row is left", roberta(65).with(map[string]any{"max_position_embeddings": 100}, nil), arch.ErrTensor, "more than 66 rows"},
		{"the last token for a head", modern("classifier_pooling", "last"), arch.ErrConfig, `"last"`},
		{"too few kinds of layers", modern("layer_types", []string{"full_attention"}), arch.ErrConfig, "1 layers of 2"},
		{"norms without biases", modern("norm_bias", true), arch.ErrTensor, "norm.bias is missing"},
		{"a head without a bias", modern("classifier_bias", true), arch.ErrTensor, "head.dense.bias is missing"},
		{"a norm in the first layer", modernHub().with(nil, map[string][]int{"layers.0.attn_norm.weight": {32}}), arch.ErrTensor, "layers.0.attn_norm.weight"},
	})
}
