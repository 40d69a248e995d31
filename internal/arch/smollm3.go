package arch

// SmolLM3 (Hugging Face, 2025): LLaMA without rotary positions in every fourth layer (Yang et al.,
// "RoPE to NoPE and Back Again", 2025). GGUF permutes its queries and keys as for LLaMA, and does
// not say which layers these are.
func init() {
	register(architecture{
		title: "SmolLM3", about: "no positions in every fourth layer",
		gguf: "smollm3", hub: "SmolLM3ForCausalLM", kind: "smollm3", adapt: smollm3, block: prenorm,
	})
}

func smollm3(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	s.Unturned = make([]bool, len(s.Windows))
	for i := range s.Unturned {
		s.Unturned[i] = (i+1)%4 == 0
	}
	if c.gguf {
		return
	}
	s.RopeBase = 2e6
	attentionBias(c, s)
	mlpBias(c, s)
	s.noRopeLayers(c)
	if c.flag("use_sliding_window", false) {
		s.slidingLayers(c, func(i int) bool { return s.Unturned[i] })
	}
}

// noRopeLayers reads no_rope_layers, in which 0 marks a layer without positions, or else the
// interval of such layers.
func (s *Spec) noRopeLayers(c *config) {
	list, ok := c.m.Ints("no_rope_layers")
	if c.has("no_rope_layers") && (!ok || len(list) < s.Layers) {
		c.failf("no_rope_layers has %d numbers for %d layers", len(list), s.Layers)
		return
	}
	for i := range s.Unturned {
		if ok {
			s.Unturned[i] = list[i] == 0
		} else {
			s.Unturned[i] = (i+1)%c.integer("no_rope_layer_interval", 4) == 0
		}
	}
}
