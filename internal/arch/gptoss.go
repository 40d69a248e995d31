package arch

import "github.com/realizar/realizar/internal/plan"

// gpt-oss (OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025): biases everywhere, a sink for
// each head, a window in every second layer, and experts whose gated unit is clamped and shifted.
// Checkpoints store experts in MXFP4, [out, in], or in bf16, transposed, with gate and up in
// alternate rows.
func init() {
	register(architecture{
		title: "gpt-oss", about: "sinks, windows in every second layer, experts with biases and clamped gates, also in MXFP4",
		gguf: "gpt-oss", hub: "GptOssForCausalLM", kind: "gpt_oss", adapt: gptOSS, block: prenorm,
		ggufNames: names{"ffn_norm": "blk.#.post_attention_norm"},
		hubNames: names{
			"attn_sinks":            "*layers.#.self_attn.sinks.",
			"ffn_gate_inp":          "*layers.#.mlp.router",
			"ffn_gate_up_exps":      "*layers.#.mlp.experts.gate_up_proj",
			"ffn_down_exps":         "*layers.#.mlp.experts.down_proj",
			"ffn_gate_up_exps_t":    "*layers.#.mlp.experts.gate_up_proj.",
			"ffn_down_exps_t":       "*layers.#.mlp.experts.down_proj.",
			"ffn_gate_up_exps.bias": "*layers.#.mlp.experts.gate_up_proj_bias.",
			"ffn_down_exps.bias":    "*layers.#.mlp.experts.down_proj_bias.",
		},
	})
}

func gptOSS(c *config, s *Spec) {
	s.Sinks, s.Unrounded = true, true
	s.QKVBias, s.OutBias = required, required
	limit := 7.0
	s.epsilon(c, 1e-5)
	s.headDim(c, 64)
	s.alternate(c, 2, 128)
	if !c.gguf {
		limit = c.number("swiglu_limit", limit)
		s.RopeBase = 150000
		if !c.flag("attention_bias", true) {
			s.QKVBias, s.OutBias = without, without
		}
		if alpha := c.number("swiglu_alpha", 1.702); alpha != 1.702 {
			c.failf("swiglu_alpha is %v; supported is 1.702", alpha)
		}
		if !c.hasAny("rope_parameters.") && !c.hasAny("rope_scaling.") {
			c.failf("both rope_parameters and rope_scaling are missing")
		}
	}
	s.mixture(c, Mixture{
		Experts: 128, RouterBias: required, ExpertBias: required, Alternate: true,
		Route:     plan.RouteAttr{Used: 4, Score: plan.SoftmaxChosen},
		ExpertGLU: plan.GLUAttr{Act: plan.QuickGELU, Limit: limit, Shift: 1},
	})
}
