package arch

import "cmp"

// Gemma 3 (Gemma team, 2025), text only: Gemma 2 with normalized queries and keys instead of
// softcaps. Five of six layers have a window and their own rope base, whose frequencies are never
// scaled.
func init() {
	register(architecture{
		title: "Gemma 3 (text)", about: "normalised queries and keys, windows in five of six layers with a rope base of their own",
		gguf: "gemma3", hub: "Gemma3ForCausalLM", kind: "gemma3_text", keys: gemmaKeys, hubNames: sandwichNames, adapt: gemma3, block: sandwich,
	})
}

func gemma3(c *config, s *Spec) {
	gemma(c, s)
	gemmaScale(c, s, 62)
	s.QKNorm = qkHeads
	s.LogitCap = c.softcap("final_logit_softcapping", 0)
	if limit := c.softcap("attn_logit_softcapping", 0); limit > 0 {
		c.failf("%s is %v; Gemma 3 has no softcap of scores", c.key("attn_logit_softcapping"), limit)
	}
	s.alternate(c, 6, 0)
	s.RopeBase = 1e6
	if !c.gguf {
		s.LocalBase = c.optional("rope_local_base_freq")
	}
	s.LocalBase = cmp.Or(s.LocalBase, 1e4)
}
