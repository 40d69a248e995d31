package arch

import "github.com/realizar/realizar/internal/plan"

// Qwen3-MoE (Yang et al., "Qwen3 Technical Report", 2025): Qwen3 with many small experts and no
// shared one.
func init() {
	register(architecture{
		title: "Qwen 3 MoE", about: "Qwen 3 with experts by softmax, normalised",
		gguf: "qwen3moe", hub: "Qwen3MoeForCausalLM", kind: "qwen3_moe", adapt: qwen3moe, block: prenorm,
	})
}

func qwen3moe(c *config, s *Spec) {
	s.QKNorm = qkHeads
	attentionBias(c, s)
	m := Mixture{Experts: 128, ExpertFFN: 768, Route: plan.RouteAttr{Used: 8, Normalize: c.gguf}}
	if c.gguf {
		m.ExpertFFN = s.FFN / max(1, c.integer("expert_used_count", 1)) // for files without the key
	}
	s.mixture(c, m)
	if !c.gguf && c.flag("use_sliding_window", false) && c.m.Type("sliding_window") != "null" {
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", defaultWindow) })
	}
}
