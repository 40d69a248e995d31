package arch

import (
	"maps"

	"github.com/realizar/realizar/internal/plan"
)

// Falcon (Almazrouei et al., "The Falcon Series of Open Language Models", 2023): attention and the
// feed-forward layer in parallel, with one norm for both or one each. All or many query heads share
// a key/value head. Checkpoints store the query heads that share a key/value head next to it.
func init() {
	a := architecture{
		gguf: "falcon", hub: "FalconForCausalLM", kind: "falcon", adapt: falcon, block: falconLayer, norm: plan.LayerNorm,
		base: "transformer.", ffn: 4, defaults: map[string]int{"max_position_embeddings": 2048},
		keys: map[string]string{
			"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "intermediate_size": "ffn_hidden_size",
			"num_key_value_heads": "num_kv_heads", "rms_norm_eps": "layer_norm_epsilon", "hidden_act": "activation",
		},
		hubNames: names{
			"token_embd": "*word_embeddings", "output_norm": "*ln_f",
			"attn_norm": "*h.#.input_layernorm", "norm_of_attn": "*h.#.ln_attn", "norm_of_ffn": "*h.#.ln_mlp",
			"attn_qkv": "*h.#.self_attention.query_key_value", "attn_output": "*h.#.self_attention.dense",
			"ffn_norm": "*h.#.post_attention_layernorm", "ffn_up": "*h.#.mlp.dense_h_to_4h", "ffn_down": "*h.#.mlp.dense_4h_to_h",
		},
		ggufNames: names{"norm_of_attn": "blk.#.attn_norm_2", "norm_of_ffn": "blk.#.attn_norm"},
		layouts:   map[string]layout{"attn_qkv": grouped},

		title: "Falcon 1 and 2", about: "attention and feed-forward side by side, few key/value heads, three layouts of the fused weight",
	}
	register(a)
	// The names in the first checkpoints.
	a.gguf, a.hub, a.keys, a.title = "", "RWForCausalLM", maps.Clone(a.keys), "Falcon 1, the first checkpoints"
	a.keys["num_key_value_heads"] = "n_head_kv"
	for _, a.kind = range []string{"RefinedWebModel", "RefinedWeb"} {
		register(a)
	}
}

func falcon(c *config, s *Spec) {
	s.Ungated = true
	s.Act = c.activation("hidden_act", "gelu")
	if s.Parallel = c.gguf || c.flag("parallel_attn", true); c.gguf {
		return
	}
	c.only("alibi", false)
	s.HeadDim, s.HeadBias = s.Hidden/s.Heads, without
	if c.flag("bias", false) {
		s.QKVBias, s.OutBias, s.MLPBias = required, required, required
	}
	switch {
	case c.flag("new_decoder_architecture", c.has("n_head_kv")):
		if !s.Parallel {
			c.failf("parallel_attn is false beside new_decoder_architecture, want true")
		}
	case c.flag("multi_query", true):
		s.KVHeads = 1
	default:
		s.KVHeads = s.Heads
	}
}

func falconLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	switch {
	case !s.Parallel:
		return prenorm(b, s, w, x)
	case w.has("norm_of_attn"):
		return parallelNorms(b, s, w, x, "norm_of_attn", "norm_of_ffn")
	}
	return parallel(b, s, w, x)
}
