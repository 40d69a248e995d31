package arch

import "github.com/realizar/realizar/internal/plan"

// StarCoder2 (Lozhkov et al., "StarCoder 2 and The Stack v2", 2024): LayerNorms, biases and a
// feed-forward layer without a gate.
func init() {
	register(architecture{
		title: "StarCoder2", about: "LayerNorm, biases, no gate",
		gguf: "starcoder2", hub: "Starcoder2ForCausalLM", kind: "starcoder2", adapt: starcoder2, block: prenorm, norm: plan.LayerNorm,
		keys:     map[string]string{"rms_norm_eps": "norm_epsilon"},
		hubNames: names{"ffn_up": "*layers.#.mlp.c_fc", "ffn_down": "*layers.#.mlp.c_proj"},
	})
}

func starcoder2(c *config, s *Spec) {
	s.Ungated = true
	s.Act = c.activation("hidden_act", "gelu_pytorch_tanh")
	if c.gguf {
		return
	}
	s.HeadBias = without
	if c.flag("use_bias", true) {
		s.QKVBias, s.OutBias, s.MLPBias = required, required, required
	}
	s.windows(func(int) bool { return c.has("sliding_window") }, func() int { return c.integer("sliding_window", -1) })
}
