package arch

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// Gemma (Gemma team, 2024): embeddings are scaled by the root of their width, the feed-forward
// layer's gate is a GELU, and norms multiply by 1 plus their weight. GGUF stores the sum.
func init() {
	register(architecture{
		title: "Gemma", about: "embeddings scaled by the root of their width, norms that multiply by 1+w, GELU gates",
		gguf: "gemma", hub: "GemmaForCausalLM", kind: "gemma", keys: gemmaKeys, adapt: gemma, block: prenorm,
	})
}

var gemmaKeys = map[string]string{"hidden_act": "hidden_activation", "sliding_window_pattern": "_sliding_window_pattern"}

func gemma(c *config, s *Spec) {
	s.EmbeddingScale = math.Sqrt(float64(s.Hidden))
	s.Act = plan.GELUTanh
	if c.gguf {
		return
	}
	s.Act = c.activation("hidden_act", "gelu_pytorch_tanh")
	s.NormPlus = 1
	s.headDim(c, 256)
	attentionBias(c, s)
	if c.flag("use_bidirectional_attention", false) {
		c.failf("use_bidirectional_attention is true; only models that attend to the past are supported")
	}
}

// gemmaScale reads the width by whose root scores are divided. GGUF has no key for it: it is the
// width of a head, except in the largest model, where it is the width of the residual stream
// divided by the number of heads.
func gemmaScale(c *config, s *Spec, layersOfLargest int) {
	width := float64(s.HeadDim)
	switch {
	case !c.gguf:
		width = c.number("query_pre_attn_scalar", 256)
	case s.Layers == layersOfLargest:
		width = float64(s.Hidden / s.Heads)
	}
	s.AttentionScale = 1 / math.Sqrt(width)
}
