package arch

import "github.com/realizar/realizar/internal/plan"

// ERNIE 4.5 with experts (Baidu, "ERNIE 4.5 Technical Report", 2025): experts by softmax with a
// bias to choose by, and shared ones, in a range of the layers. The layers that predict further
// tokens are omitted.
func init() {
	register(architecture{
		title: "ERNIE 4.5 MoE", about: "ERNIE 4.5 with experts by softmax with a bias to choose by, and shared ones; the first layers dense",
		gguf: "ernie4_5-moe", hub: "Ernie4_5_MoeForCausalLM", kind: "ernie4_5_moe", adapt: ernie45MoE, block: prenorm,
		hubNames: names{"exp_probs_b": "*layers.#.mlp.moe_statics.e_score_correction_bias."},
		layouts:  map[string]layout{"exp_probs_b": asVector},
		keys: map[string]string{
			"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k", "n_shared_experts": "moe_num_shared_experts",
		},
		defaults: map[string]int{"n_shared_experts": 2},
	})
}

func ernie45MoE(c *config, s *Spec) {
	s.Rope.Interleaved = true
	s.RopeBase = 500000
	s.epsilon(c, 1e-5)
	if !c.gguf && c.flag("use_bias", false) { // the experts have none
		s.QKVBias, s.OutBias, s.MLPBias, s.HeadBias = required, required, required, required
	}
	s.mixture(c, Mixture{
		Experts: 64, ExpertFFN: 1536, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 6, Score: plan.SoftmaxAll, Normalize: true},
	})
	first, last, step := c.first("leading_dense_block_count", 0), s.Layers-1, c.integer("interleave_moe_layer_step", 1)
	if !c.gguf {
		first, step = c.first("moe_layer_start_index", 1), c.integer("moe_layer_interval", 1)
		if end, _ := c.m.Int("moe_layer_end_index"); end != -1 {
			last = c.first("moe_layer_end_index", last)
		}
	}
	s.sparse(&s.Mixture, func(i int) bool { return i >= first && i <= last && (i+1)%step == 0 })
}
