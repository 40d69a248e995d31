package arch

import "github.com/realizar/realizar/internal/plan"

// Mixtral (Jiang et al., "Mixtral of Experts", 2024): Mistral with experts in place of every
// feed-forward layer. In GGUF its models are called llama.
func init() {
	register(architecture{
		title: "Mixtral", about: "a mixture of experts in every layer; its files in GGUF are LLaMA's",
		hub: "MixtralForCausalLM", kind: "mixtral", hubNames: blockSparse, adapt: mixtral, block: prenorm,
	})
}

// blockSparse holds Mixtral's names for the parts of a mixture.
var blockSparse = names{
	"ffn_gate_inp": "*layers.#.block_sparse_moe.gate",
	"ffn_gate_exp": "*layers.#.block_sparse_moe.experts.@.w1",
	"ffn_up_exp":   "*layers.#.block_sparse_moe.experts.@.w3",
	"ffn_down_exp": "*layers.#.block_sparse_moe.experts.@.w2",
	"exp_probs_b":  "*layers.#.block_sparse_moe.e_score_correction_bias.",
}

var mixtralExperts = Mixture{Experts: 8, Route: plan.RouteAttr{Used: 2, Score: plan.SoftmaxAll, Normalize: true}}

func mixtral(c *config, s *Spec) {
	if !c.has("rope_theta") {
		s.RopeBase = 1e6
	}
	s.mixture(c, mixtralExperts)
	if c.has("sliding_window") {
		s.windows(func(int) bool { return true }, func() int { return c.integer("sliding_window", 0) })
	}
}
