package arch

// Phi-3 (Microsoft, "Phi-3 Technical Report", 2024) and Phi-4: LLaMA with one weight for queries,
// keys and values, one for gate and up, and context extension by longrope.
func init() {
	register(architecture{
		title: "Phi-3, Phi-4", about: "queries, keys and values in one weight, gate and up in one; longrope",
		gguf: "phi3", hub: "Phi3ForCausalLM", kind: "phi3", adapt: phi3, block: prenorm,
	})
}

func phi3(c *config, s *Spec) {
	s.epsilon(c, 1e-5)
	if !c.gguf && c.has("sliding_window") {
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", 0) })
	}
}
