package arch

// Seed-OSS (ByteDance Seed, 2025): LLaMA with optional biases on queries, keys and values, on the
// output of attention and in the feed-forward layer. GGUF has another name for its second norm.
func init() {
	register(architecture{
		title: "Seed-OSS", about: "biases by three flags",
		gguf: "seed_oss", hub: "SeedOssForCausalLM", kind: "seed_oss", adapt: seedOSS, block: prenorm,
		ggufNames: names{"ffn_norm": "blk.#.post_attention_norm"},
	})
}

func seedOSS(c *config, s *Spec) {
	s.headDim(c, 128)
	mlpBias(c, s)
	if c.gguf {
		return
	}
	if c.flag("attention_bias", true) {
		s.QKVBias = required
	}
	if c.flag("attention_out_bias", false) {
		s.OutBias = required
	}
}
