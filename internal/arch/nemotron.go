package arch

import "github.com/realizar/realizar/internal/plan"

// Nemotron-4 (Parmar et al., "Nemotron-4 15B Technical Report", 2024), and Minitron: squared ReLU
// without a gate, half of each head rotated, and LayerNorms that multiply by 1 plus their weight.
// GGUF stores the sum.
func init() {
	register(architecture{
		title: "Nemotron 3/4, Minitron", about: "LayerNorm that multiplies by 1+w, squared ReLU without a gate, half of a head turned",
		gguf: "nemotron", hub: "NemotronForCausalLM", kind: "nemotron", adapt: nemotron, block: prenorm, norm: plan.LayerNorm,
		keys: map[string]string{"rms_norm_eps": "norm_eps"},
	})
}

func nemotron(c *config, s *Spec) {
	s.Ungated, s.Partial = true, 0.5
	s.Act = c.activation("hidden_act", "relu2")
	if c.gguf {
		return
	}
	s.NormPlus, s.HeadBias = 1, without
	attentionBias(c, s)
	if c.flag("mlp_bias", false) {
		s.MLPBias = required
	}
}
