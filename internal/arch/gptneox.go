package arch

import "github.com/realizar/realizar/internal/plan"

// GPT-NeoX (Black et al., "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", 2022), and
// Pythia: attention and the feed-forward layer in parallel, each with its own norm. Checkpoints
// store the queries, keys and values of a head together.
func init() {
	register(architecture{
		title: "GPT-NeoX, Pythia", about: "attention and feed-forward side by side, each with its norm; a quarter of a head turned; queries, keys and values of a head in one weight",
		gguf: "gptneox", hub: "GPTNeoXForCausalLM", kind: "gpt_neox", adapt: gptneox, block: gptneoxLayer, norm: plan.LayerNorm,
		base: "gpt_neox.",
		keys: map[string]string{"rms_norm_eps": "layer_norm_eps", "partial_rotary_factor": "rotary_pct", "rope_theta": "rotary_emb_base"},
		hubNames: names{
			"token_embd": "*embed_in", "output_norm": "*final_layer_norm", "output": "embed_out",
			"attn_qkv": "*layers.#.attention.query_key_value", "attn_output": "*layers.#.attention.dense",
			"ffn_up": "*layers.#.mlp.dense_h_to_4h", "ffn_down": "*layers.#.mlp.dense_4h_to_h",
		},
		layouts: map[string]layout{"attn_qkv": grouped},
	})
}

func gptneox(c *config, s *Spec) {
	s.Ungated, s.Partial = true, 0.25
	s.Act = c.activation("hidden_act", "gelu")
	s.Parallel = c.flag("use_parallel_residual", true)
	if c.gguf {
		return
	}
	s.HeadDim, s.KVHeads = s.Hidden/s.Heads, s.Heads
	s.MLPBias, s.HeadBias = required, without
	if c.flag("attention_bias", true) {
		s.QKVBias, s.OutBias = required, required
	}
}

func gptneoxLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if s.Parallel {
		return parallelNorms(b, s, w, x, "attn_norm", "ffn_norm")
	}
	return prenorm(b, s, w, x)
}
