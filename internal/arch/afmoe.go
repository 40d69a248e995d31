package arch

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// Trinity (Arcee AI, "Arcee Trinity Large Technical Report", 2026): norms before and after each
// part, gated attention, windows in three of four layers and no positions in the fourth, experts by
// sigmoid with a bias to choose by and shared ones in all but the first layers.
func init() {
	register(architecture{
		title: "Arcee Trinity", about: "norms before and after each part, gated attention, windows in three of four layers and no positions in the fourth; experts by sigmoid with a bias to choose by, and shared ones; the first layers dense",
		gguf: "afmoe", hub: "AfmoeForCausalLM", kind: "afmoe", adapt: afmoe, block: sandwich,
		hubNames: names{
			"post_attention_norm": "*layers.#.post_attention_layernorm", "ffn_norm": "*layers.#.pre_mlp_layernorm", "post_ffw_norm": "*layers.#.post_mlp_layernorm",
			"attn_gate":    "*layers.#.self_attn.gate_proj",
			"ffn_gate_inp": "*layers.#.mlp.router.gate",
			"exp_probs_b":  "*layers.#.mlp.expert_bias.",
		},
		keys: map[string]string{
			"n_shared_experts": "num_shared_experts", "first_k_dense_replace": "num_dense_layers", "routed_scaling_factor": "route_scale",
			"sliding_window_pattern": "global_attn_every_n_layers", "norm_topk_prob": "route_norm", "scoring_func": "score_func",
		},
		defaults: map[string]int{"n_shared_experts": 2, "first_k_dense_replace": 1, "sliding_window": 1024},
	})
}

func afmoe(c *config, s *Spec) {
	s.QKNorm, s.OutGate = qkHeads, sigmoidGate
	s.epsilon(c, 1e-5)
	s.headDim(c, 128)
	attentionBias(c, s)
	s.alternate(c, 4, 0)
	s.turnWindows()
	if c.gguf || c.flag("mup_enabled", false) {
		s.EmbeddingScale = math.Sqrt(float64(s.Hidden))
	}
	s.mixture(c, Mixture{
		Experts: 64, ExpertFFN: 1408, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 6, Score: plan.SigmoidEach, Normalize: true},
	})
}
