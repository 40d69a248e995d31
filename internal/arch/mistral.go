package arch

// Mistral (Jiang et al., 2023): LLaMA with every layer's attention limited to a
// window. In GGUF its models are called llama.
func init() {
	register(architecture{title: "Mistral", about: "every layer with a window; its files in GGUF are LLaMA's", hub: "MistralForCausalLM", kind: "mistral", adapt: mistral, block: prenorm})
}

func mistral(c *config, s *Spec) {
	if c.m.Type("sliding_window") != "null" {
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", defaultWindow) })
	}
}
