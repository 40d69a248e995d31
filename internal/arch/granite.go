package arch

// Granite 3 (IBM, "Granite 3.0 Language Models", 2024): LLaMA with four multipliers: of embeddings,
// of scores, of outputs added to the residual stream, and, as a divisor, of logits. GGUF permutes
// its queries and keys as for LLaMA.
func init() {
	register(architecture{
		title: "Granite 3", about: "multipliers of embeddings, scores, residuals and logits",
		gguf: "granite", hub: "GraniteForCausalLM", kind: "granite", adapt: granite, block: prenorm,
	})
}

func granite(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	attentionBias(c, s)
	mlpBias(c, s)
	graniteScales(c, s)
}

// graniteScales reads the multipliers.
func graniteScales(c *config, s *Spec) {
	if !c.gguf {
		s.EmbeddingScale = c.number("embedding_multiplier", 1)
		s.AttentionScale = c.number("attention_multiplier", 1)
		s.ResidualScale = c.number("residual_multiplier", 1)
		s.LogitScale = 1 / c.number("logits_scaling", 1)
		return
	}
	s.EmbeddingScale = c.number("embedding_scale", 1)
	s.AttentionScale = c.optional("attention.scale")
	s.ResidualScale = c.number("residual_scale", 1)
	s.LogitScale = 1 / c.number("logit_scale", -1)
	if !c.flag("rope.scaling.finetuned", true) { // GGUF's sign that there are no positions
		s.Unturned = make([]bool, len(s.Windows))
		for i := range s.Unturned {
			s.Unturned[i] = true
		}
	}
}
