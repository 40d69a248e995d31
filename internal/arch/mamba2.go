package arch

// Mamba-2 (Dao and Gu, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through
// Structured State Space Duality", 2024): Mamba with heads whose states decay as a whole, steps
// that are projected directly, and a norm of the gated result. transformers normalizes whole rows;
// llama.cpp, as the paper's code, normalizes each group by itself.
func init() {
	register(architecture{
		title: "Mamba-2", about: "Mamba with heads, whose states decay as a whole, and a norm of the gated result",
		gguf: "mamba2", hub: "Mamba2ForCausalLM", kind: "mamba2", adapt: mamba2, block: states, zeros: true,
		base: "backbone.", hubNames: dualNames("*layers.#.mixer.", backboneNames), ggufNames: stateGGUF, layouts: stateLayouts,
		keys:     map[string]string{"rms_norm_eps": "layer_norm_epsilon"},
		defaults: map[string]int{"num_attention_heads": 1, "intermediate_size": 1, "max_position_embeddings": unlimited},
	})
}

func mamba2(c *config, s *Spec) {
	if c.gguf {
		s.dualGGUF(c)
		return
	}
	s.epsilon(c, 1e-5)
	s.StateAct = s.Act
	s.Inner = int(c.number("expand", 2) * float64(s.Hidden))
	s.States, s.Taps = c.integer("state_size", 128), c.integer("conv_kernel", 4)
	s.StateHeads, s.StateGroups = c.integer("num_heads", 128), c.integer("n_groups", 8)
	if dim := c.integer("head_dim", 64); dim*s.StateHeads != s.Inner {
		c.failf("num_heads is %d and head_dim is %d, which are not the %d columns of hidden_size times expand", s.StateHeads, dim, s.Inner)
	}
	s.NormGroups, s.GateEps = 1, s.Eps
	s.ConvBias = c.biasIf("use_conv_bias", true)
	s.projected(c, "use_bias", false)
	s.stepLimits(c)
}
