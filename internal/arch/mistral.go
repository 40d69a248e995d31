package arch

// Mistral (Jiang et al., 2023): LLaMA with every layer's attention limited to a
// window. In GGUF its models are called llama.
func init() {
	register(architecture{hub: "MistralForCausalLM", adapt: mistral, block: prenorm})
}

func mistral(c *config, s *Spec) {
	switch c.m.Type("sliding_window") {
	case "null":
	case "":
		s.windows(func(int) bool { return true }, func() int { return 4096 }) // what transformers takes then
	default:
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", -1) })
	}
}
