package arch

import "github.com/realizar/realizar/internal/plan"

// ModernBERT (Warner et al., "Smarter, Better, Faster, Longer", 2024): rotary positions, gated
// feed-forward layers, and layers with a window and their own rope base between layers without. The
// first layer's attention reads the output of the embedding's norm directly.
func init() {
	for _, a := range []architecture{
		{title: "ModernBERT", about: "an encoder with rotary positions, gated feed-forward layers, and windows in two of three layers", gguf: "modern-bert", hub: "ModernBertModel", kind: "modernbert", adapt: modernBERT},
		{title: "ModernBERT with a head", about: "ranks or classifies", hub: "ModernBertForSequenceClassification", adapt: classifying(modernBERT)},
	} {
		a.hubNames, a.norm, a.encode = modernNames, plan.LayerNorm, encodeModernBERT
		a.keys = map[string]string{"rms_norm_eps": "norm_eps", "hidden_act": "hidden_activation", "rope_theta": "global_rope_theta"}
		register(a)
	}
}

var modernNames = names{
	"token_embd":      "*embeddings.tok_embeddings",
	"token_embd_norm": "*embeddings.norm",
	"output_norm":     "*final_norm",
	"cls":             "head.dense",
	"cls.norm":        "head.norm",
	"cls.output":      "classifier",

	"attn_norm":   "*layers.#.attn_norm",
	"attn_qkv":    "*layers.#.attn.Wqkv",
	"attn_output": "*layers.#.attn.Wo",
	"ffn_norm":    "*layers.#.mlp_norm",
	"ffn_up":      "*layers.#.mlp.Wi",
	"ffn_down":    "*layers.#.mlp.Wo",
}

func modernBERT(c *config, s *Spec) {
	s.RopeBase, s.LocalBase = 160000, 10000
	e := &s.Encoder
	e.act = plan.GELU
	if c.gguf {
		s.Act = plan.GELU
		s.LocalBase = c.number("rope.freq_base_swa", s.LocalBase)
		e.mean = true // llama.cpp also uses the mean for every model
		every := c.integer("attention.sliding_window_pattern", 3)
		s.windows(func(i int) bool { return i%every != 0 }, func() int { return 1 })
		s.near(c.integer("attention.sliding_window", 128))
		return
	}
	s.Act = c.activation("hidden_act", "gelu")
	s.LocalBase = c.number("local_rope_theta", s.LocalBase)
	if !c.has("rms_norm_eps") {
		s.Eps = 1e-5 // transformers' default
	}
	every := c.integer("global_attn_every_n_layers", 3)
	s.slidingLayers(c, func(i int) bool { return i%every != 0 })
	s.near(c.integer("local_attention", 128))
	flagged := func(key string) bias {
		if c.flag(key, false) {
			return required
		}
		return without
	}
	s.NormBias, s.MLPBias, e.bias = flagged("norm_bias"), flagged("mlp_bias"), flagged("classifier_bias")
	attentionBias(c, s)
	e.act = c.activation("classifier_activation", "gelu")
	switch pooling := c.text("classifier_pooling", "cls"); pooling {
	case "cls":
	case "mean":
		e.mean = true
	default:
		c.failf("classifier_pooling is %q, want %q or %q", pooling, "cls", "mean")
	}
}

// near sets a window of that many tokens, half of them on either side, for the layers that have
// one.
func (s *Spec) near(window int) {
	for i, w := range s.Windows {
		if w > 0 {
			s.Windows[i] = window/2 + 1
		}
	}
}

func encodeModernBERT(b *plan.Builder, s *Spec, w *weights) {
	top := layer{w, noLayer}
	x := norm(b, s, top, embedded(b, s, top), "token_embd_norm", s.Hidden)
	x = encoderLayers(b, s, w, modernLayer, x)
	encoded(b, s, top, norm(b, s, top, x, "output_norm", s.Hidden))
}

// modernLayer is [prenorm] with bidirectional attention.
func modernLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := x
	if w.index > 0 {
		h = norm(b, s, w, x, "attn_norm", s.Hidden)
	}
	x = b.Add(x, bidirectional(b, s, w, h))
	return b.Add(x, feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)))
}
