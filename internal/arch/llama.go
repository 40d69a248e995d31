package arch

// LLaMA (Touvron et al., 2023) and models with the same structure. GGUF permutes the rows of its
// query and key weights, so that neighboring elements are rotated as pairs. Mistral's models, also
// those with experts, use the same GGUF architecture.
func init() {
	register(architecture{title: "LLaMA 1 to 3, Mistral", about: "the model that the others differ from", gguf: "llama", hub: "LlamaForCausalLM", kind: "llama", adapt: llama, block: prenorm})
}

func llama(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	if n, _ := c.m.Int(c.key("expert_count")); c.gguf && n > 0 {
		s.mixture(c, mixtralExperts)
	}
	attentionBias(c, s)
	mlpBias(c, s)
}
