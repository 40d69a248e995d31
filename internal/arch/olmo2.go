package arch

import "cmp"

// OLMo 2 (Ai2, "2 OLMo 2 Furious", 2024): the outputs of attention and the feed-forward layer are
// normalized instead of their inputs. Queries and keys are normalized over all heads together.
//
// OLMo 3 (Ai2, 2025) has windows in three of four layers, whose rope frequencies are not scaled.
// GGUF calls both olmo2.
func init() {
	register(architecture{
		title: "OLMo 2", about: "norms after each part and none before, queries and keys normalised over all heads",
		gguf: "olmo2", hub: "Olmo2ForCausalLM", kind: "olmo2", hubNames: postnormNames, adapt: olmo2, block: postnorm,
	})
	register(architecture{
		title: "OLMo 3", about: "OLMo 2 with windows in three of four layers; its files in GGUF are OLMo 2's",
		hub: "Olmo3ForCausalLM", kind: "olmo3", hubNames: postnormNames, adapt: olmo3, block: postnorm,
	})
}

func olmo2(c *config, s *Spec) {
	s.QKNorm = qkWidth
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	if c.gguf && c.hasWindow() {
		s.alternate(c, 4, 0)
		s.LocalBase = cmp.Or(s.LocalBase, c.number("rope.freq_base", s.RopeBase))
	}
}

func olmo3(c *config, s *Spec) {
	olmo2(c, s)
	s.alternate(c, 4, 0)
	s.RopeBase = 500000
	s.LocalBase = c.number("rope_parameters.rope_theta", c.number("rope_theta", s.RopeBase))
}
