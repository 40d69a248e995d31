package arch

// ERNIE 4.5 (Baidu, 2025), dense: LLaMA with neighboring elements rotated as pairs in every format.
// Older checkpoints have another class name.
func init() {
	register(architecture{
		title: "ERNIE 4.5", about: "neighbouring pairs turned, optional biases",
		gguf: "ernie4_5", hub: "Ernie4_5ForCausalLM", kind: "ernie4_5", adapt: ernie45, block: prenorm,
	})
	register(architecture{
		title: "ERNIE 4.5", about: "neighbouring pairs turned, optional biases",
		hub: "Ernie4_5_ForCausalLM", adapt: ernie45, block: prenorm,
	})
}

func ernie45(c *config, s *Spec) {
	s.Rope.Interleaved = true
	s.RopeBase = 500000
	s.epsilon(c, 1e-5)
	s.headDim(c, 128)
	if !c.gguf && c.flag("use_bias", false) {
		s.QKVBias, s.OutBias, s.MLPBias = required, required, required
	}
}
