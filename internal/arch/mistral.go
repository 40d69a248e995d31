package arch

// Mistral (Jiang et al., 2023): LLaMA with a window in every layer. In GGUF its models are called
// llama.
func init() {
	register(architecture{title: "Mistral", about: "every layer with a window; its files in GGUF are LLaMA's", hub: "MistralForCausalLM", kind: "mistral", adapt: mistral, block: prenorm})
}

func mistral(c *config, s *Spec) {
	if c.m.Type("sliding_window") != "null" {
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", defaultWindow) })
	}
}
