package arch

// Gemma 2 (Gemma team, 2024): Gemma with norms before and after each part, softcaps of scores and
// logits, and a window in every second layer.
func init() {
	register(architecture{
		title: "Gemma 2", about: "norms before and after each part, softcaps of scores and logits, a window in every second layer",
		gguf: "gemma2", hub: "Gemma2ForCausalLM", kind: "gemma2", keys: gemmaKeys, hubNames: sandwichNames, adapt: gemma2, block: sandwich,
	})
}

func gemma2(c *config, s *Spec) {
	gemma(c, s)
	gemmaScale(c, s, 46)
	s.AttentionCap = c.softcap("attn_logit_softcapping", 50)
	s.LogitCap = c.softcap("final_logit_softcapping", 30)
	s.alternate(c, 2, defaultWindow)
}
