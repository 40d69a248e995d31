package arch

// Hunyuan (Tencent, model card, 2025), dense: queries and keys are normalized by head after they
// are rotated.
func init() {
	register(architecture{
		title: "Hunyuan (dense)", about: "queries and keys normalised after they are turned",
		gguf: "hunyuan-dense", hub: "HunYuanDenseV1ForCausalLM", kind: "hunyuan_v1_dense", adapt: hunyuan, block: prenorm,
		hubNames: names{"attn_q_norm": "*layers.#.self_attn.query_layernorm", "attn_k_norm": "*layers.#.self_attn.key_layernorm"},
	})
}

func hunyuan(c *config, s *Spec) {
	s.QKNorm = qkTurned
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
}
