package arch

import "github.com/realizar/realizar/internal/plan"

// FlexOlmo (Shi et al., "FlexOlmo: Open Language Models for Flexible Data Use", 2025): OLMo 2 with
// experts by softmax in every layer, each trained on data of its own.
func init() {
	register(architecture{
		title: "FlexOlmo", about: "OLMo 2 with experts by softmax",
		hub: "FlexOlmoForCausalLM", kind: "flex_olmo", hubNames: postnormNames, adapt: flexOlmo, block: postnorm,
	})
}

func flexOlmo(c *config, s *Spec) {
	s.QKNorm = qkWidth
	s.RopeBase = 500000
	attentionBias(c, s)
	s.mixture(c, Mixture{Experts: 7, Route: plan.RouteAttr{Used: 5}})
}
