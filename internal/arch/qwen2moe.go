package arch

import "github.com/realizar/realizar/internal/plan"

// Qwen1.5-MoE and Qwen2-MoE (Qwen team, "Qwen1.5-MoE: Matching 7B Model Performance with 1/3
// Activated Parameters", 2024): Qwen2 with many small experts and a gated shared expert.
func init() {
	register(architecture{
		title: "Qwen 1.5 MoE, Qwen 2 MoE", about: "experts by softmax, and a shared one with a gate of its own",
		gguf: "qwen2moe", hub: "Qwen2MoeForCausalLM", kind: "qwen2_moe", adapt: qwen2moe, block: prenorm,
		hubNames: names{
			"ffn_gate_inp_shexp": "*layers.#.mlp.shared_expert_gate",
			"ffn_gate_shexp":     "*layers.#.mlp.shared_expert.gate_proj",
			"ffn_up_shexp":       "*layers.#.mlp.shared_expert.up_proj",
			"ffn_down_shexp":     "*layers.#.mlp.shared_expert.down_proj",
		},
	})
}

func qwen2moe(c *config, s *Spec) {
	m := Mixture{Experts: 60, ExpertFFN: 1408, SharedFFN: 5632, SharedGate: required, Route: plan.RouteAttr{Used: 4}}
	if c.gguf {
		m.ExpertFFN, m.SharedFFN = s.FFN/max(1, c.integer("expert_used_count", 1)), s.FFN // for files without the keys
	}
	s.mixture(c, m)
	if c.gguf {
		return
	}
	if c.flag("qkv_bias", true) {
		s.QKVBias = required
	}
	if c.flag("use_sliding_window", false) {
		s.slidingLayers(c, func(i int) bool { return i%2 == 0 && i < c.first("max_window_layers", 28) })
	}
}
