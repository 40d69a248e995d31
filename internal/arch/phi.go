package arch

import "github.com/realizar/realizar/internal/plan"

// Phi (Li et al., "Textbooks Are All You Need II: phi-1.5 technical report", 2023), up to Phi-2:
// attention and the feed-forward layer in parallel, one norm for both, and biases everywhere, also
// in the head.
func init() {
	register(architecture{
		title: "Phi-1, 1.5, 2", about: "attention and feed-forward side by side after one LayerNorm, part of a head turned, biases everywhere",
		gguf: "phi2", hub: "PhiForCausalLM", kind: "phi", adapt: phi, block: parallel, norm: plan.LayerNorm,
		keys: map[string]string{"rms_norm_eps": "layer_norm_eps"},
		hubNames: names{
			"output_norm": "*final_layernorm",
			"attn_output": "*layers.#.self_attn.dense", "attn_q_norm": "*layers.#.self_attn.q_layernorm", "attn_k_norm": "*layers.#.self_attn.k_layernorm",
			"ffn_up": "*layers.#.mlp.fc1", "ffn_down": "*layers.#.mlp.fc2",
		},
	})
}

func phi(c *config, s *Spec) {
	s.Ungated, s.Partial = true, 0.5
	s.Act = c.activation("hidden_act", "gelu_new")
	s.QKVBias, s.OutBias, s.MLPBias, s.HeadBias = required, required, required, required
	if c.gguf {
		return
	}
	s.HeadDim = s.Hidden / s.Heads
	if c.flag("qk_layernorm", false) {
		s.QKNorm = qkHeads
	}
}
