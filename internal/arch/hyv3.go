package arch

import "github.com/realizar/realizar/internal/plan"

// Hy3 (Tencent, Hy3-preview, model card, 2026): Qwen3's attention, experts by sigmoid with a bias
// to choose by and a shared one, in all but the first layers. The layers that predict further tokens
// are omitted.
func init() {
	register(architecture{
		title: "Hy3", about: "Qwen 3's attention; experts by sigmoid with a bias to choose by, and shared ones; the first layer dense",
		gguf: "hy_v3", hub: "HYV3ForCausalLM", kind: "hy_v3", adapt: hyV3, block: hyV3Layer,
		hubNames: names{
			"ffn_gate_inp":   "*layers.#.mlp.router.gate",
			"exp_probs_b":    "*layers.#.mlp.expert_bias.",
			"ffn_gate_shexp": "*layers.#.mlp.shared_mlp.gate_proj", "ffn_up_shexp": "*layers.#.mlp.shared_mlp.up_proj", "ffn_down_shexp": "*layers.#.mlp.shared_mlp.down_proj",
		},
		ggufNames: names{"exp_probs_b": "blk.#.exp_probs_b."},
		keys:      map[string]string{"n_shared_experts": "num_shared_experts", "routed_scaling_factor": "router_scaling_factor"},
		defaults:  map[string]int{"n_shared_experts": 1, "first_k_dense_replace": 1},
	})
}

func hyV3(c *config, s *Spec) {
	s.QKNorm = qkHeads
	s.RopeBase = 11158840
	s.epsilon(c, 1e-5)
	s.headDim(c, 128)
	s.predicting(c)
	attentionBias(c, s)
	mlpBias(c, s)
	m := Mixture{Experts: 192, ExpertFFN: 1536, ChoiceBias: required, Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true}}
	if !c.gguf {
		m.Route.Scale = 2.826
	}
	s.mixture(c, m)
}

// hyV3Layer finds the layers without experts by their tensors in GGUF, which has no key for them.
func hyV3Layer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if !w.hub && !w.has("ffn_gate_inp") {
		s.Experts = 0
	}
	return prenorm(b, s, w, x)
}
