package arch

import "github.com/realizar/realizar/internal/plan"

// Phi-3.5-MoE (Microsoft, "Phi-3 Technical Report", 2024): LayerNorms with biases, a bias of the
// head, and experts chosen one after the other, as in SparseMixer (Liu et al., "GRIN:
// GRadient-INformed MoE", 2024). The first checkpoints have another class name. The key of the
// norms' epsilon says rms in all files.
func init() {
	a := architecture{
		title: "Phi-3.5-MoE", about: "LayerNorm, biases in attention and the head; longrope; experts by SparseMixer",
		gguf: "phimoe", hub: "PhimoeForCausalLM", kind: "phimoe", hubNames: blockSparse, norm: plan.LayerNorm, adapt: phiMoE, block: prenorm,
	}
	register(a)
	a.gguf, a.hub, a.kind, a.title = "", "PhiMoEForCausalLM", "", "Phi-3.5-MoE, the first checkpoints"
	register(a)
}

func phiMoE(c *config, s *Spec) {
	m := Mixture{Experts: 16, Route: plan.RouteAttr{Used: 2, Score: plan.SparseMixer, Jitter: 0.01}}
	attentionBias(c, s)
	if !c.gguf {
		s.RopeBase = 1e6
		s.HeadBias = without
		if c.flag("lm_head_bias", false) {
			s.HeadBias = required
		}
		if c.has("sliding_window") {
			s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", 0) })
		}
		if c.has("router_jitter_noise") {
			m.Route.Jitter = c.optional("router_jitter_noise")
		}
	}
	if s.mixture(c, m); s.Route.Used != 2 {
		c.failf("%s is %d; SparseMixer chooses 2 experts", c.key("num_experts_per_tok"), s.Route.Used)
	}
	s.Route.Score = plan.SparseMixer // GGUF's key does not know it
}
