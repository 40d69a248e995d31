package arch

// Ministral 3 (Mistral AI, "Ministral 3", 2026): Mistral without windows, with queries that grow
// with their position. GGUF permutes its queries and keys as for LLaMA.
func init() {
	register(architecture{
		title: "Ministral 3", about: "queries that grow with their position",
		gguf: "mistral3", hub: "Ministral3ForCausalLM", kind: "ministral3", adapt: ministral3, block: prenorm,
	})
}

func ministral3(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	s.epsilon(c, 1e-5)
	if c.gguf {
		s.growing(c, "attention.temperature_scale", "rope.scaling.original_context_length", s.Context)
		return
	}
	s.headDim(c, 128)
	if c.has("sliding_window") {
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", 0) })
	}
	at := c.ropeKeys()
	if !c.hasAny(at) {
		c.failf("both rope_parameters and rope_scaling are missing")
	}
	s.growing(c, at+"llama_4_scaling_beta", at+"original_max_position_embeddings", s.Context)
}
