package arch

import "github.com/realizar/realizar/internal/plan"

// GLM-4.5 and later (Zeng et al., "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation
// Models", 2025): experts chosen by sigmoids and a bias, as in DeepSeek-V3, and a shared expert, in
// all but the first layers. Half of each head is rotated.
func init() {
	register(architecture{
		title: "GLM-4.5, 4.6", about: "experts by sigmoid with a bias to choose by, in groups, and shared ones; the first layers dense",
		gguf: "glm4moe", hub: "Glm4MoeForCausalLM", kind: "glm4_moe", adapt: glm4moe, block: prenorm, nextn: &nextn{},
		ggufNames: names{"ffn_norm": "blk.#.post_attention_norm"},
	})
}

func glm4moe(c *config, s *Spec) {
	s.Partial = 0.5
	s.epsilon(c, 1e-5)
	s.mixture(c, Mixture{
		Experts: 128, ExpertFFN: 1408, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	})
	s.predicting(c)
	if c.gguf {
		s.QKNorm = qkFound
		return
	}
	if c.flag("use_qk_norm", false) {
		s.QKNorm = qkHeads
	}
	if c.flag("attention_bias", false) {
		s.QKVBias = required
	}
}
