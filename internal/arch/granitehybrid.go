package arch

import "github.com/realizar/realizar/internal/plan"

// Granite 4 (IBM, "Granite 4.0: Hyper-efficient, High Performance Hybrid Models for Enterprise",
// 2025): Granite with Mamba-2's states in most layers, experts and a shared expert, or the shared
// expert alone. Most models have no positions. GGUF has Bamba under its name, and permutes queries
// and keys as for LLaMA.
func init() {
	register(architecture{
		title: "Granite 4", about: "Granite with Mamba-2's states in most layers, mostly without positions; with or without experts",
		gguf: "granitehybrid", hub: "GraniteMoeHybridForCausalLM", kind: "granitemoehybrid", adapt: graniteHybrid, block: hybrid, zeros: true,
		hubNames: dualNames("*layers.#.mamba.", names{
			"ffn_gate_inp":      "*layers.#.block_sparse_moe.router.layer",
			"ffn_gate_up_exps":  "*layers.#.block_sparse_moe.input_linear",
			"ffn_down_exps":     "*layers.#.block_sparse_moe.output_linear",
			"ffn_gate_up":       "*layers.#.shared_mlp.input_linear",
			"ffn_down":          "*layers.#.shared_mlp.output_linear",
			"ffn_gate_up_shexp": "*layers.#.shared_mlp.input_linear",
			"ffn_down_shexp":    "*layers.#.shared_mlp.output_linear",
		}),
		ggufNames: stateGGUF, layouts: stateLayouts,
		keys:     map[string]string{"layer_types": "layers_block_type"},
		defaults: map[string]int{"max_position_embeddings": 2048},
	})
}

func graniteHybrid(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	attentionBias(c, s)
	graniteScales(c, s, 1)
	m := Mixture{Route: plan.RouteAttr{Score: plan.SoftmaxChosen}}
	if c.gguf {
		s.dualGGUF(c)
		s.headless()
		if c.first("expert_count", 0) > 0 {
			s.mixture(c, m)
		}
		return
	}
	s.hybridStates(c)
	s.layerKinds(c, c.key("layer_types"))
	if kind := c.text("position_embedding_type", "nope"); kind != "rope" {
		s.positionless()
	}
	m.Experts, m.Route.Used = 8, 2
	if c.first("num_local_experts", 8) > 0 {
		s.mixture(c, m)
	} else {
		s.FFN = c.integer("shared_intermediate_size", 1024)
	}
}

// layerKinds sets the layers that have states by a list of kinds of layers; without a list all
// have.
func (s *Spec) layerKinds(c *config, key string) {
	kinds, ok := c.m.Strings(key)
	if !ok {
		return
	}
	if len(kinds) != s.Layers {
		c.failf("%s names %d layers of %d", key, len(kinds), s.Layers)
		return
	}
	for i, k := range kinds {
		if k != "mamba" && k != "linear_attention" && k != "attention" && k != "full_attention" {
			c.failf("%s[%d] is %q; the nearest known are %s", key, i, k, nearestOf(k, []string{"mamba", "linear_attention", "attention", "full_attention"}))
			return
		}
	}
	s.stateLayers(func(i int) bool { return kinds[i] == "mamba" || kinds[i] == "linear_attention" })
}
