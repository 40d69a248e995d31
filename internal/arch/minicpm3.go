package arch

import "math"

// MiniCPM3 (OpenBMB, 2024, the model card of openbmb/MiniCPM3-4B): latent attention whose pairs are
// halves, and multipliers of embeddings, outputs and logits (Hu et al., "MiniCPM", 2024). GGUF files
// do not have the multipliers; llama.cpp takes those of the only model.
func init() {
	register(architecture{
		title: "MiniCPM3", about: "latent attention; multipliers of embeddings, residuals and logits",
		gguf: "minicpm3", hub: "MiniCPM3ForCausalLM", kind: "minicpm3", adapt: minicpm3, block: prenorm, hubNames: latentNames,
		defaults: map[string]int{"kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32},
	})
}

func minicpm3(c *config, s *Spec) {
	s.epsilon(c, 1e-5)
	mlpBias(c, s)
	l := s.latent(c, 768)
	s.yarnScores(c)
	if c.gguf && !c.has("attention.value_length") {
		l.Value = s.Hidden / max(1, s.Heads)
	}
	// null stands for no multiplier.
	depth, base := math.Sqrt(float64(s.Layers)), float64(s.Hidden)
	if c.gguf || c.m.Type("scale_depth") != "null" {
		depth = 1.4
	}
	if c.gguf || c.m.Type("dim_model_base") != "null" {
		base = 256
	}
	s.EmbeddingScale = 12
	if !c.gguf {
		s.EmbeddingScale, depth, base = c.number("scale_emb", 12), c.number("scale_depth", depth), c.number("dim_model_base", base)
	}
	s.ResidualScale = depth / math.Sqrt(float64(max(1, s.Layers)))
	s.LogitScale = base / float64(max(1, s.Hidden))
}
