package arch

// GLM-4-0414 (Z.ai, 2025): norms before and after each part, half of each head rotated, in
// neighboring pairs, and gate and up in one weight.
func init() {
	register(architecture{
		title: "GLM-4-0414", about: "norms before and after each part, half of a head turned, neighbouring pairs",
		gguf: "glm4", hub: "Glm4ForCausalLM", kind: "glm4", adapt: glm4, block: sandwich,
		hubNames: names{
			"post_attention_norm": "*layers.#.post_self_attn_layernorm",
			"ffn_norm":            "*layers.#.post_attention_layernorm",
			"post_ffw_norm":       "*layers.#.post_mlp_layernorm",
		},
	})
}

func glm4(c *config, s *Spec) {
	s.Partial = 0.5
	// Files of vision models, whose positions have several parts, are permuted.
	s.Rope.Interleaved = !c.gguf || !c.has("rope.dimension_sections")
	s.epsilon(c, 1.5625e-7)
	s.headDim(c, 128)
	if !c.gguf && c.flag("attention_bias", true) {
		s.QKVBias = required
	}
}
