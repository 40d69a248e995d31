package arch

// Arcee's foundation models (Arcee AI, AFM-4.5B, model card, 2025): LLaMA with squared ReLU without
// a gate. GGUF permutes its queries and keys as for LLaMA.
func init() {
	register(architecture{
		title: "Arcee AFM", about: "squared ReLU without a gate",
		gguf: "arcee", hub: "ArceeForCausalLM", kind: "arcee", adapt: arcee, block: prenorm,
	})
}

func arcee(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	s.Ungated = true
	s.Act = c.activation("hidden_act", "relu2")
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	mlpBias(c, s)
}
