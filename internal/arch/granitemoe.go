package arch

import "github.com/realizar/realizar/internal/plan"

// Granite 3 MoE (IBM, "Granite 3.0 Language Models", 2024): Granite with experts, whose gates and
// ups are in one tensor, and in some models a shared expert.
func init() {
	a := architecture{
		gguf: "granitemoe", hub: "GraniteMoeForCausalLM", kind: "granitemoe", adapt: graniteMoE, block: prenorm,
		hubNames: names{
			"ffn_gate_inp":      "*layers.#.block_sparse_moe.router.layer",
			"ffn_gate_up_exps":  "*layers.#.block_sparse_moe.input_linear",
			"ffn_down_exps":     "*layers.#.block_sparse_moe.output_linear",
			"ffn_gate_up_shexp": "*layers.#.shared_mlp.input_linear",
			"ffn_down_shexp":    "*layers.#.shared_mlp.output_linear",
		},
		title: "Granite 3 MoE", about: "Granite with experts, by softmax over those chosen",
	}
	register(a)
	a.gguf, a.hub, a.kind, a.title = "", "GraniteMoeSharedForCausalLM", "granitemoeshared", "Granite 3 MoE, with a shared expert"
	register(a)
}

func graniteMoE(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	attentionBias(c, s)
	graniteScales(c, s)
	s.mixture(c, Mixture{Experts: 8, Route: plan.RouteAttr{Used: 2, Score: plan.SoftmaxChosen}})
}
