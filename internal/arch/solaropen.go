package arch

import "github.com/realizar/realizar/internal/plan"

// Solar Open (Upstage, "Solar Open Technical Report", 2026): LLaMA's attention, and experts chosen as
// in DeepSeek-V3, with shared ones, in every layer.
func init() {
	register(architecture{
		title: "Solar Open", about: "experts by sigmoid with a bias to choose by, in groups, and shared ones",
		hub: "SolarOpenForCausalLM", kind: "solar_open", adapt: solarOpen, block: prenorm,
		keys:     map[string]string{"intermediate_size": "moe_intermediate_size"},
		defaults: map[string]int{"n_shared_experts": 1},
	})
}

func solarOpen(c *config, s *Spec) {
	s.RopeBase = 1e6
	s.epsilon(c, 1e-5)
	s.headDim(c, 128)
	if c.flag("attention_bias", false) {
		s.QKVBias = required
	}
	s.mixture(c, Mixture{
		Experts: 128, ExpertFFN: 1280, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	})
	s.Sparse = nil // transformers does not read first_k_dense_replace
}
