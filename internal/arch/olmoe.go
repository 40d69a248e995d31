package arch

import "github.com/realizar/realizar/internal/plan"

// OLMoE (Muennighoff et al., "OLMoE: Open Mixture-of-Experts Language Models", 2024): queries and
// keys normalized over all heads together, and experts by softmax in every layer. Queries, keys and
// values may be clamped.
func init() {
	register(architecture{
		title: "OLMoE", about: "experts by softmax; queries and keys normalised over all heads",
		gguf: "olmoe", hub: "OlmoeForCausalLM", kind: "olmoe", adapt: olmoe, block: prenorm,
	})
}

func olmoe(c *config, s *Spec) {
	s.QKNorm = qkWidth
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	if c.gguf {
		s.QKVBound = c.optional("attention.clamp_kqv")
	} else {
		s.HeadDim = s.Hidden / max(1, s.Heads)
		s.QKVBound = c.optional("clip_qkv")
	}
	s.mixture(c, Mixture{Experts: 64, Route: plan.RouteAttr{Used: 8}})
}
