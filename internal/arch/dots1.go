package arch

import "github.com/realizar/realizar/internal/plan"

// dots.llm1 (rednote-hilab, "dots.llm1 Technical Report", 2025): Qwen3's attention, experts chosen
// as in DeepSeek-V3 and shared ones, in all but the first layers.
func init() {
	register(architecture{
		title: "dots.llm1", about: "Qwen 3's attention; experts by sigmoid with a bias to choose by, in groups, and shared ones; the first layers dense",
		gguf: "dots1", hub: "Dots1ForCausalLM", kind: "dots1", adapt: dots1, block: prenorm,
	})
}

func dots1(c *config, s *Spec) {
	s.QKNorm = qkHeads
	attentionBias(c, s)
	s.mixture(c, Mixture{
		ExpertFFN: 1408, ChoiceBias: required,
		Route: plan.RouteAttr{Score: plan.SigmoidEach, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	})
	if !c.gguf {
		s.slidingLayers(c, func(i int) bool { return i >= c.first("max_window_layers", 62) })
	}
}
