package arch

// Qwen3 (Yang et al., 2025): queries and keys are normalized by head before they are rotated.
func init() {
	register(architecture{title: "Qwen 3", about: "queries and keys normalised by head", gguf: "qwen3", hub: "Qwen3ForCausalLM", kind: "qwen3", adapt: qwen3, block: prenorm})
}

func qwen3(c *config, s *Spec) {
	s.QKNorm = qkHeads
	attentionBias(c, s)
	s.headDim(c, 128)
	if !c.gguf {
		qwenWindows(c, s)
	}
}
