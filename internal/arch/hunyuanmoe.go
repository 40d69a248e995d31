package arch

import "github.com/realizar/realizar/internal/plan"

// Hunyuan with experts (Tencent, "Hunyuan-A13B Technical Report", 2025): queries and keys are
// normalized by head after they are rotated, and every layer has experts by softmax and a shared
// one. All are as wide as intermediate_size says.
func init() {
	register(architecture{
		title: "Hunyuan-A13B", about: "queries and keys normalised after they are turned; experts by softmax, normalised, and a shared one",
		gguf: "hunyuan-moe", hub: "HunYuanMoEV1ForCausalLM", kind: "hunyuan_v1_moe", adapt: hunyuanMoE, block: prenorm,
		hubNames: names{
			"attn_q_norm": "*layers.#.self_attn.query_layernorm", "attn_k_norm": "*layers.#.self_attn.key_layernorm",
			"ffn_gate_inp":   "*layers.#.mlp.gate.wg",
			"ffn_gate_shexp": "*layers.#.mlp.shared_mlp.gate_proj", "ffn_up_shexp": "*layers.#.mlp.shared_mlp.up_proj", "ffn_down_shexp": "*layers.#.mlp.shared_mlp.down_proj",
		},
		keys: map[string]string{"moe_intermediate_size": "intermediate_size", "num_experts_per_tok": "moe_topk"},
	})
}

func hunyuanMoE(c *config, s *Spec) {
	s.QKNorm = qkTurned
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	s.mixture(c, Mixture{Experts: 1, SharedFFN: s.FFN, Route: plan.RouteAttr{Used: 1, Normalize: true}})
	if c.gguf {
		return
	}
	for _, part := range []struct {
		key       string
		supported int
	}{{"num_shared_expert", 1}, {"moe_layer_num_skipped", 0}} {
		if n := c.first(part.key, part.supported); n != part.supported {
			c.failf("%s is %d; supported is %d", part.key, n, part.supported)
		}
	}
	c.only("use_cla", false)
}
