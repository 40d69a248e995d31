package arch

// Qwen2 (Yang et al., 2024): biases on queries, keys and values, and windows in the upper layers if
// the configuration says so.
func init() {
	register(architecture{title: "Qwen 2, 2.5", about: "biases on queries, keys and values; windows in upper layers", gguf: "qwen2", hub: "Qwen2ForCausalLM", kind: "qwen2", adapt: qwen2, block: prenorm})
}

func qwen2(c *config, s *Spec) {
	s.QKVBias = required
	if !c.gguf {
		qwenWindows(c, s)
	}
}

// qwenWindows reads the windows of the upper layers.
func qwenWindows(c *config, s *Spec) {
	if c.flag("use_sliding_window", false) {
		s.slidingLayers(c, func(i int) bool { return i >= c.first("max_window_layers", 28) })
	}
}
