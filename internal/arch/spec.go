package arch

import (
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// A Spec is the numbers of a decoder. What is a matter of numbers is a field
// here; what is a matter of structure is a block of its own.
type Spec struct {
	Layers  int
	Hidden  int // width of the residual stream
	FFN     int // width of the feed-forward layer
	Heads   int
	KVHeads int
	HeadDim int
	Context int   // positions the model was made for
	Vocab   int   // rows of the embedding table
	Windows []int // by layer: tokens that attention sees, 0 all
	Eps     float64
	Rope    plan.RopeAttr
	QKVBias bias // of the projections to queries, keys and values
	OutBias bias // of the projection back from attention
	MLPBias bias // of the feed-forward layer
	QKNorm  bool // queries and keys are normalised by head
}

// spec reads what almost all decoders share.
func (c *config) spec() Spec {
	if c.gguf {
		return c.ggufSpec()
	}
	return c.hubSpec()
}

// ggufSpec reads the keys that GGUF's specification lists.
func (c *config) ggufSpec() Spec {
	s := Spec{
		Layers:  c.integer("block_count", -1),
		Hidden:  c.integer("embedding_length", -1),
		FFN:     c.integer("feed_forward_length", -1),
		Heads:   c.integer("attention.head_count", -1),
		Context: c.integer("context_length", -1),
		Eps:     c.number("attention.layer_norm_rms_epsilon", -1),
		QKVBias: asFound,
		OutBias: asFound,
		MLPBias: asFound,
	}
	s.KVHeads = c.integer("attention.head_count_kv", s.Heads)
	s.HeadDim = c.integer("attention.key_length", s.Hidden/max(1, s.Heads))
	if v := c.integer("attention.value_length", s.HeadDim); v != s.HeadDim {
		c.failf("%s is %d beside keys of %d; they must be equal", c.key("attention.value_length"), v, s.HeadDim)
	}
	if c.has("expert_count") {
		if n, _ := c.m.Int(c.key("expert_count")); n > 0 {
			c.failf("%s is %d; mixtures of experts are not supported", c.key("expert_count"), n)
		}
	}
	s.windows(func(int) bool { return c.has("attention.sliding_window") }, func() int { return c.integer("attention.sliding_window", 0) })
	s.validate(c)
	return s
}

// hubSpec reads config.json as transformers writes it.
func (c *config) hubSpec() Spec {
	if act := c.text("hidden_act", "silu"); act != "silu" && act != "swish" {
		c.failf("hidden_act is %q, want %q", act, "silu")
	}
	s := Spec{
		Layers:  c.integer("num_hidden_layers", -1),
		Hidden:  c.integer("hidden_size", -1),
		FFN:     c.integer("intermediate_size", -1),
		Heads:   c.integer("num_attention_heads", -1),
		Context: c.integer("max_position_embeddings", -1),
		Eps:     c.number("rms_norm_eps", 1e-6),
		QKVBias: without,
		OutBias: without,
		MLPBias: without,
	}
	s.KVHeads = c.integer("num_key_value_heads", s.Heads)
	s.HeadDim = c.integer("head_dim", s.Hidden/max(1, s.Heads))
	s.Windows = make([]int, min(max(s.Layers, 0), maxLayers))
	s.validate(c)
	return s
}

// maxLayers bounds what a file can make the builder allocate.
const maxLayers = 4096

// windows gives the layers for which sliding says so the window of size.
func (s *Spec) windows(sliding func(layer int) bool, size func() int) {
	s.Windows = make([]int, min(max(s.Layers, 0), maxLayers))
	for i := range s.Windows {
		if sliding(i) {
			s.Windows[i] = size()
		}
	}
}

func (s *Spec) validate(c *config) {
	if s.Layers > maxLayers {
		c.failf("%d layers, want at most %d", s.Layers, maxLayers)
	}
	if s.KVHeads > 0 && s.Heads%s.KVHeads != 0 {
		c.failf("%d query heads cannot share %d key/value heads", s.Heads, s.KVHeads)
	}
	if s.HeadDim < 1 {
		c.failf("a width of %d leaves nothing for each of %d heads", s.Hidden, s.Heads)
	}
}

// slidingLayers reads the windows of config.json's that name each layer's kind,
// or, in the older style, the first layer that slides.
func slidingLayers(c *config, s *Spec) {
	if !c.flag("use_sliding_window", false) || c.m.Type("sliding_window") == "null" {
		return
	}
	sliding := func(i int) bool { return i >= c.first("max_window_layers", 28) }
	if kinds, ok := c.m.Strings("layer_types"); ok {
		if len(kinds) != s.Layers {
			c.failf("layer_types names %d layers of %d", len(kinds), s.Layers)
			return
		}
		for i, k := range kinds {
			if k != "sliding_attention" && k != "full_attention" {
				c.failf("layer_types[%d] is %q, want %q or %q", i, k, "full_attention", "sliding_attention")
			}
		}
		sliding = func(i int) bool { return strings.HasPrefix(kinds[i], "sliding") }
	}
	s.windows(sliding, func() int { return c.integer("sliding_window", defaultWindow) })
}

// defaultWindow is what transformers takes for a sliding_window that is not
// there; null is none.
const defaultWindow = 4096

// attentionBias reads the flag of config.json that gives all projections of
// attention biases.
func attentionBias(c *config, s *Spec) {
	if !c.gguf && c.flag("attention_bias", false) {
		s.QKVBias, s.OutBias = required, required
	}
}

// first is a layer's number, which may be 0.
func (c *config) first(key string, def int) int {
	if n, ok := c.m.Int(key); ok && n == 0 {
		return 0
	}
	return c.integer(key, def)
}
