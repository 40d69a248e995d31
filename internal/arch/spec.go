package arch

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// A Spec is the numbers of a model. What is a matter of numbers is a field
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

	// By layer, or nil: what differs from the number above. See Spec.at.
	EachFFN, EachHeads, EachKVHeads []int

	Norm     *plan.Op // RMSNorm or LayerNorm
	NormBias bias     // of a LayerNorm
	NormPlus float64  // added to the weights of norms that the file holds
	Eps      float64

	Rope      plan.RopeAttr
	Partial   float64        // share of a head that is turned, where the file does not say
	RopeBase  float64        // likewise, the base of frequencies
	LocalBase float64        // the base in layers with a window, 0: as elsewhere
	Local     *plan.RopeAttr // of layers with a window, nil: Rope
	Unturned  []bool         // by layer, or nil: heads are not turned
	Unrounded bool           // YaRN blends between fractions of pairs, which GGUF does not say

	Act      plan.Activation // of the feed-forward layer
	QKVBias  bias            // of the projections to queries, keys and values
	OutBias  bias            // of the projection back from attention
	MLPBias  bias            // of the feed-forward layer
	HeadBias bias            // of the head
	QKNorm   qkNorm
	Sinks    bool // attention has a sink for each head
	Learned  bool // positions are learned and added to embeddings; heads are not turned

	Ungated  bool // the feed-forward layer has no gate
	Parallel bool // it is given what attention is given, in layers that can be of both kinds

	EmbeddingScale float64 // what a token's embedding is multiplied with
	ResidualScale  float64 // what is multiplied before it is added to the residual stream
	LogitScale     float64
	AttentionScale float64   // of scores, 0: 1/sqrt(HeadDim)
	EachScale      []float64 // by layer, or nil: AttentionScale
	AttentionCap   float64   // softcap of scores, 0: none
	LogitCap       float64   // softcap of logits, 0: none

	Mixture
	Predicting int // layers after the last, which predict tokens beyond the next one and are not used

	Encoder encoding
	Labels  int // of the head that classifies texts, 0: there is none
}

// A qkNorm says how queries and keys are normalised.
type qkNorm uint8

const (
	qkPlain      qkNorm = iota // not at all
	qkHeads                    // by head, before they are turned
	qkWidth                    // all heads together, before they are turned
	qkTurned                   // by head, after they are turned
	qkEach                     // by head, each with weights of its own, before they are turned
	qkEachTurned               // likewise, after they are turned
	qkFound                    // as qkHeads, in layers that have weights for it
)

// at is the specification of layer i, whose numbers are those of the layer.
func (s *Spec) at(i int) *Spec {
	l := *s
	for _, n := range []struct {
		each []int
		to   *int
	}{{s.EachFFN, &l.FFN}, {s.EachHeads, &l.Heads}, {s.EachKVHeads, &l.KVHeads}} {
		if n.each != nil {
			*n.to = n.each[i]
		}
	}
	if s.EachScale != nil {
		l.AttentionScale = s.EachScale[i]
	}
	if s.Sparse != nil && !s.Sparse[i] {
		l.Experts = 0
	}
	return &l
}

// ropeOf says how heads of layer i are turned, nil: they are not.
func (s *Spec) ropeOf(i int) *plan.RopeAttr {
	switch {
	case s.Learned, s.Unturned != nil && s.Unturned[i]:
		return nil
	case s.Local != nil && s.Windows[i] > 0:
		return s.Local
	}
	return &s.Rope
}

// spec reads what almost all models share.
func (c *config) spec(norm *plan.Op) Spec {
	s := Spec{Norm: norm, Partial: 1, RopeBase: 10000, EmbeddingScale: 1, ResidualScale: 1, LogitScale: 1}
	if c.gguf {
		c.ggufSpec(&s)
	} else {
		c.hubSpec(&s)
	}
	s.validate(c)
	return s
}

// ggufSpec reads the keys that GGUF's specification lists.
func (c *config) ggufSpec(s *Spec) {
	s.Layers = c.integer("block_count", -1)
	s.Hidden = c.integer("embedding_length", -1)
	s.FFN, s.EachFFN = c.each("feed_forward_length", s.Layers, -1)
	s.Heads, s.EachHeads = c.each("attention.head_count", s.Layers, -1)
	s.Context = c.integer("context_length", -1)
	if s.Norm == plan.LayerNorm {
		s.Eps = c.number("attention.layer_norm_epsilon", -1)
	} else {
		s.Eps = c.number("attention.layer_norm_rms_epsilon", -1)
	}
	s.NormBias, s.QKVBias, s.OutBias, s.MLPBias = asFound, asFound, asFound, asFound
	s.KVHeads, s.EachKVHeads = c.each("attention.head_count_kv", s.Layers, s.Heads)
	if s.EachHeads != nil && !c.has("attention.head_count_kv") {
		s.EachKVHeads = s.EachHeads
	}
	s.HeadDim = c.integer("attention.key_length", s.Hidden/max(1, s.Heads))
	if v := c.integer("attention.value_length", s.HeadDim); v != s.HeadDim {
		c.failf("%s is %d beside keys of %d; they must be equal", c.key("attention.value_length"), v, s.HeadDim)
	}
	s.ggufWindows(c, 0, 0)
	s.LocalBase = c.optional("rope.freq_base_swa")
}

// hubSpec reads config.json as transformers writes it.
func (c *config) hubSpec(s *Spec) {
	s.Layers = c.integer("num_hidden_layers", -1)
	s.Hidden = c.integer("hidden_size", -1)
	s.Heads = c.integer("num_attention_heads", -1)
	s.FFN = c.integer("intermediate_size", cmp.Or(c.ffn*s.Hidden, -1))
	s.Context = c.integer("max_position_embeddings", -1)
	s.Eps = c.number("rms_norm_eps", 1e-6)
	if s.Norm == plan.LayerNorm {
		s.Eps = c.number("rms_norm_eps", 1e-5)
	}
	s.NormBias, s.QKVBias, s.OutBias, s.MLPBias = required, without, without, without
	s.KVHeads = c.integer("num_key_value_heads", s.Heads)
	s.HeadDim = c.integer("head_dim", s.Hidden/max(1, s.Heads))
	s.Windows = make([]int, min(max(s.Layers, 0), maxLayers))
	s.Act = c.activation("hidden_act", "silu")
}

// activations are those of config.json, by transformers' names.
var activations = map[string]plan.Activation{
	"silu": plan.SiLU, "swish": plan.SiLU, "gelu": plan.GELU, "gelu_new": plan.GELUTanh, "gelu_pytorch_tanh": plan.GELUTanh, "gelu_fast": plan.GELUTanh,
	"relu": plan.ReLU, "relu2": plan.ReLUSquared, "quick_gelu": plan.QuickGELU,
}

// activation is the activation that key names, or def when it names none.
func (c *config) activation(key, def string) plan.Activation {
	name := c.text(key, def)
	act, ok := activations[name]
	if !ok {
		c.failf("%s is %q; the nearest known are %s", c.key(key), name, nearestOf(name, slices.Collect(maps.Keys(activations))))
	}
	return act
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
		return
	}
	if s.HeadDim < 1 {
		c.failf("a width of %d leaves nothing for each of %d heads", s.Hidden, s.Heads)
	}
	for i := range s.Windows {
		if l := s.at(i); l.KVHeads > 0 && l.Heads%l.KVHeads != 0 {
			c.failf("%d query heads cannot share %d key/value heads", l.Heads, l.KVHeads)
		}
	}
}

// slidingLayers gives the layers that config.json's layer_types calls sliding the
// window of sliding_window, and without layer_types those for which sliding says so.
func (s *Spec) slidingLayers(c *config, sliding func(layer int) bool) {
	if c.m.Type("sliding_window") == "null" {
		return
	}
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

// ggufWindows gives all layers but each nth, or all where nth is 0, the window that the
// file says, or else def, 0 for none. The file may list the layers, or say nth itself.
func (s *Spec) ggufWindows(c *config, nth, def int) {
	const pattern = "attention.sliding_window_pattern"
	listed, ok := c.m.Bools(c.key(pattern))
	switch {
	case !ok:
		nth = c.first(pattern, nth)
	case len(listed) != s.Layers:
		c.failf("%s has %d values for %d layers", c.key(pattern), len(listed), s.Layers)
		return
	}
	s.windows(func(i int) bool {
		if ok {
			return listed[i]
		}
		return nth == 0 || (i+1)%nth != 0
	}, func() int { return c.first("attention.sliding_window", def) })
}

// alternate gives all layers but each nth a window, unless the file says which; def
// is that of GGUF files that say nothing.
func (s *Spec) alternate(c *config, nth, def int) {
	if c.gguf {
		s.ggufWindows(c, nth, def)
		return
	}
	s.slidingLayers(c, func(i int) bool { return (i+1)%c.integer("sliding_window_pattern", nth) != 0 })
}

// hasWindow reports whether the file says that layers can have a window.
func (c *config) hasWindow() bool {
	if c.gguf {
		return c.first("attention.sliding_window", 0) > 0
	}
	return c.m.Type("sliding_window") != "null"
}

// turnWindows leaves heads as they are but in layers with a window (Yang et al., "RoPE
// to NoPE and Back Again", 2025).
func (s *Spec) turnWindows() {
	s.Unturned = make([]bool, len(s.Windows))
	for i, w := range s.Windows {
		s.Unturned[i] = w == 0
	}
}

// epsilon and headDim are for architectures whose config.json leaves out other numbers
// than the most do.
func (s *Spec) epsilon(c *config, def float64) {
	if !c.gguf {
		s.Eps = c.number("rms_norm_eps", def)
	}
}

func (s *Spec) headDim(c *config, def int) {
	if !c.gguf && c.m.Type("head_dim") == "" {
		s.HeadDim = def
	}
}

// attentionBias reads the flag of config.json that gives all projections of
// attention biases.
func attentionBias(c *config, s *Spec) {
	if !c.gguf && c.flag("attention_bias", false) {
		s.QKVBias, s.OutBias = required, required
	}
}

// mlpBias reads the flag for the feed-forward layer.
func mlpBias(c *config, s *Spec) {
	if !c.gguf && c.flag("mlp_bias", false) {
		s.MLPBias = required
	}
}

// first is a number that may be 0, as that of the first layer.
func (c *config) first(key string, def int) int {
	if n, ok := c.m.Int(c.key(key)); ok && n == 0 {
		return 0
	}
	return c.integer(key, def)
}
