package arch

// EXAONE 4.0 (LG AI Research, 2025): the outputs of attention and the feed-forward layer are
// normalized, and queries and keys by head. In models with windows, layers without one have no
// positions.
func init() {
	register(architecture{
		title: "EXAONE 4.0", about: "norms after each part, normalised queries and keys, windows in three of four layers and no positions in the fourth",
		gguf: "exaone4", hub: "Exaone4ForCausalLM", kind: "exaone4", hubNames: postnormNames, adapt: exaone4, block: postnorm,
	})
}

func exaone4(c *config, s *Spec) {
	s.QKNorm = qkHeads
	s.epsilon(c, 1e-5)
	s.alternate(c, 4, 0)
	if c.hasWindow() {
		s.turnWindows()
	}
}
