package arch

import "github.com/realizar/realizar/internal/plan"

// MiniMax-M2 (MiniMax, 2025, the model card of MiniMaxAI/MiniMax-M2): experts chosen by sigmoids
// and a bias, no shared expert. Queries and keys are normalized over all heads together, and a part
// of each head is rotated.
func init() {
	register(architecture{
		title: "MiniMax-M2", about: "experts by sigmoid with a bias to choose by; queries and keys normalised over all heads",
		gguf: "minimax-m2", hub: "MiniMaxM2ForCausalLM", kind: "minimax_m2", hubNames: blockSparse, adapt: minimaxM2, block: prenorm,
	})
}

func minimaxM2(c *config, s *Spec) {
	s.QKNorm = qkWidth
	s.mixture(c, Mixture{
		Experts: 256, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true},
	})
	if c.gguf {
		return
	}
	s.RopeBase = 5e6
	s.headDim(c, 128)
	s.Partial = float64(c.integer("rotary_dim", s.HeadDim)) / float64(max(1, s.HeadDim))
	if !c.flag("use_qk_norm", true) || !c.flag("use_routing_bias", true) {
		c.failf("use_qk_norm or use_routing_bias is false; supported are models with both")
	}
	if kind := c.text("qk_norm_type", "per_layer"); kind != "per_layer" {
		c.failf("qk_norm_type is %q; supported is %q", kind, "per_layer")
	}
	if n := c.first("shared_intermediate_size", 0); n > 0 {
		c.failf("shared_intermediate_size is %d; supported are models without shared experts", n)
	}
}
