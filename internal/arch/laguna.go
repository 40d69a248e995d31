package arch

import "github.com/realizar/realizar/internal/plan"

// Laguna (poolside, Laguna XS.2, model card, 2026): attention gated by head or by element, a number
// of heads by layer, windows with a rope base of their own, experts by sigmoid with a bias to choose
// by and a shared one in all but the first layers.
func init() {
	register(architecture{
		title: "Laguna", about: "gated attention, heads by layer, windows with a rope base of their own; experts by sigmoid with a bias to choose by, and a shared one; the first layers dense",
		gguf: "laguna", hub: "LagunaForCausalLM", kind: "laguna", adapt: laguna, block: prenorm,
		hubNames: names{
			"attn_gate":      "*layers.#.self_attn.g_proj",
			"exp_probs_b":    "*layers.#.mlp.experts.e_score_correction_bias.",
			"ffn_gate_shexp": "*layers.#.mlp.shared_expert.gate_proj", "ffn_up_shexp": "*layers.#.mlp.shared_expert.up_proj", "ffn_down_shexp": "*layers.#.mlp.shared_expert.down_proj",
		},
		keys:     map[string]string{"routed_scaling_factor": "moe_routed_scaling_factor"},
		defaults: map[string]int{"first_k_dense_replace": 1, "sliding_window": 512},
	})
}

func laguna(c *config, s *Spec) {
	s.QKNorm, s.OutGate = qkHeads, softplusGate
	s.headDim(c, 128)
	attentionBias(c, s)
	m := Mixture{
		Experts: 256, ExpertFFN: 512, SharedFFN: 512, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true},
	}
	if c.gguf {
		if _, listed := c.m.Bools(c.key("attention.sliding_window_pattern")); !listed {
			s.windows(func(i int) bool { return i%4 != 0 }, func() int { return c.first("attention.sliding_window", 0) })
		}
	} else {
		s.slidingLayers(c, func(int) bool { return false })
		_, s.EachHeads = c.each("num_attention_heads_per_layer", s.Layers, s.Heads)
		m.RouterCap = c.optional("moe_router_logit_softcapping")
		c.only("moe_apply_router_weight_on_input", false)
		c.only("norm_topk_prob", true)
		if !c.hasAny("rope_parameters.") {
			s.RopeBase, s.Partial = 500000, 0.5
			s.LocalBase, s.LocalPart = c.number("rope_local_base_freq", 10000), 1
		}
		s.validate(c)
	}
	s.mixture(c, m)
}
