package arch

import "github.com/realizar/realizar/internal/plan"

// Jamba (Lieber et al., "Jamba: A Hybrid Transformer-Mamba Language Model", 2024): Mamba's layers
// with norms of steps, inputs and outputs of the states, attention without positions in every few
// layers, and experts in every second one.
func init() {
	register(architecture{
		title: "Jamba", about: "Mamba's states with attention in every eighth layer, without positions, and experts in every second",
		gguf: "jamba", hub: "JambaForCausalLM", kind: "jamba", adapt: jamba, block: jambaBlock, zeros: true,
		hubNames: stateNames("*layers.#.mamba.", names{
			"output_norm":      "*final_layernorm",
			"ssm_dt_norm":      "*layers.#.mamba.dt_layernorm",
			"ssm_b_norm":       "*layers.#.mamba.b_layernorm",
			"ssm_c_norm":       "*layers.#.mamba.c_layernorm",
			"ffn_norm":         "*layers.#.pre_ff_layernorm",
			"ffn_gate":         "*layers.#.feed_forward.gate_proj",
			"ffn_up":           "*layers.#.feed_forward.up_proj",
			"ffn_down":         "*layers.#.feed_forward.down_proj",
			"ffn_gate_inp":     "*layers.#.feed_forward.router",
			"ffn_gate_exp":     "*layers.#.feed_forward.experts.@.gate_proj",
			"ffn_up_exp":       "*layers.#.feed_forward.experts.@.up_proj",
			"ffn_down_exp":     "*layers.#.feed_forward.experts.@.down_proj",
			"ffn_gate_up_exps": "*layers.#.feed_forward.experts.gate_up_proj.",
			"ffn_down_exps":    "*layers.#.feed_forward.experts.down_proj.",
		}),
		ggufNames: stateGGUF, layouts: stateLayouts,
		defaults: map[string]int{"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 262144},
	})
}

func jamba(c *config, s *Spec) {
	s.positionless()
	s.StepNorm, s.StateAct = stepFound, s.Act
	experts := "num_experts"
	if c.gguf {
		s.ggufStates(c)
		s.headless()
		experts = "expert_count"
	} else {
		if c.hasWindow() && c.has("sliding_window") {
			c.failf("sliding_window is %d; Jamba's attention is supported without a window", c.integer("sliding_window", 0))
		}
		s.Inner = int(c.number("mamba_expand", 2) * float64(s.Hidden))
		s.States, s.Taps = c.integer("mamba_d_state", 16), c.integer("mamba_d_conv", 4)
		s.StepRank = c.auto("mamba_dt_rank", (s.Hidden+15)/16)
		s.ConvBias = c.biasIf("mamba_conv_bias", true)
		s.projected(c, "mamba_proj_bias", false)
		period, offset := c.integer("attn_layer_period", 8), c.first("attn_layer_offset", 4)
		s.stateLayers(func(i int) bool { return i%period != offset })
	}
	if s.Experts = c.integer(experts, 16); s.Experts > 1 {
		s.mixture(c, Mixture{Experts: 16, Route: plan.RouteAttr{Used: 2, Score: plan.SoftmaxAll}})
	}
}

// jambaBlock is hybrid with experts in the layers that have a router.
func jambaBlock(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if !w.has("ffn_gate_inp") {
		s.Experts = 0
	}
	return hybrid(b, s, w, x)
}
