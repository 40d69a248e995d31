package arch

// Qwen3 (Yang et al., 2025): queries and keys normalised by head before they
// are turned.
func init() {
	register(architecture{gguf: "qwen3", hub: "Qwen3ForCausalLM", kind: "qwen3", adapt: qwen3, block: prenorm})
}

func qwen3(c *config, s *Spec) {
	s.QKNorm = qkHeads
	attentionBias(c, s)
	if !c.gguf {
		if !c.has("head_dim") {
			s.HeadDim = 128 // what transformers takes then, whatever the width
		}
		qwenWindows(c, s)
	}
}
