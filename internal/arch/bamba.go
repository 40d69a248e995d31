package arch

import "slices"

// Bamba (IBM, Princeton, CMU and UIUC, "Bamba: Inference-Efficient Hybrid Mamba2 Model", 2024):
// Mamba-2's layers with attention in a few, and a feed-forward layer in each. Half of a head is
// rotated.
func init() {
	register(architecture{
		title: "Bamba", about: "Mamba-2's states with attention in a few layers, half of a head turned",
		hub: "BambaForCausalLM", kind: "bamba", adapt: bamba, block: hybrid,
		hubNames: dualNames("*layers.#.mamba.", names{
			"output_norm": "*final_layernorm",
			"ffn_norm":    "*layers.#.pre_ff_layernorm",
			"ffn_gate":    "*layers.#.feed_forward.gate_proj",
			"ffn_up":      "*layers.#.feed_forward.up_proj",
			"ffn_down":    "*layers.#.feed_forward.down_proj",
		}),
		layouts:  stateLayouts,
		defaults: map[string]int{"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 262144},
	})
}

func bamba(c *config, s *Spec) {
	s.Partial = 0.5
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	mlpBias(c, s)
	s.hybridStates(c)
	attending, _ := c.m.Ints("attn_layer_indices")
	s.stateLayers(func(i int) bool { return !slices.Contains(attending, int64(i)) })
}

// hybridStates reads the keys of Mamba-2's states that several hybrids share. They normalize whole
// rows.
func (s *Spec) hybridStates(c *config) {
	s.Inner = int(c.number("mamba_expand", 2) * float64(s.Hidden))
	s.States, s.Taps = c.integer("mamba_d_state", 256), c.integer("mamba_d_conv", 4)
	s.StateHeads, s.StateGroups = c.integer("mamba_n_heads", 128), c.integer("mamba_n_groups", 1)
	if dim := c.auto("mamba_d_head", s.Inner/s.StateHeads); dim*s.StateHeads != s.Inner {
		c.failf("mamba_n_heads is %d and mamba_d_head is %d, which are not %d columns", s.StateHeads, dim, s.Inner)
	}
	s.NormGroups, s.GateEps, s.StateAct = 1, s.Eps, s.Act
	s.ConvBias = c.biasIf("mamba_conv_bias", true)
	s.projected(c, "mamba_proj_bias", false)
	s.stepLimits(c)
}
