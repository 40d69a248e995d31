package arch

// Helium (Kyutai, "Helium 1", 2025): LLaMA with neighboring elements rotated as pairs and no bias
// after attention.
func init() {
	register(architecture{
		title: "Helium 1", about: "neighbouring pairs turned",
		hub: "HeliumForCausalLM", kind: "helium", adapt: helium, block: prenorm,
	})
}

func helium(c *config, s *Spec) {
	s.Rope.Interleaved = true
	s.RopeBase = 100000
	s.epsilon(c, 1e-8)
	s.headDim(c, 128)
	mlpBias(c, s)
	if c.flag("attention_bias", false) {
		s.QKVBias = required
	}
}
