package arch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// A Spec holds the numbers of a model. Differences in numbers are fields; differences in structure
// are other blocks.
type Spec struct {
	Layers   int
	Hidden   int // width of the residual stream
	FFN      int // width of the feed-forward layer
	Heads    int
	KVHeads  int
	HeadDim  int
	ValueDim int   // length of a head's value; 0: HeadDim
	Context  int   // positions for which the model was made
	Vocab    int   // rows of the embedding table
	Windows  []int // by layer: tokens that attention sees; 0: all

	// By layer, or nil: numbers that replace the ones above. See Spec.at.
	EachFFN, EachHeads, EachKVHeads []int
	EachHeadDim                     []int
	KVFrom                          []int // by layer, or nil: the layer whose keys and values it attends to

	Norm     *plan.Op // RMSNorm or LayerNorm
	NormBias bias     // bias of a LayerNorm
	NormPlus float64  // added to the weights of norms
	Eps      float64

	Rope      plan.RopeAttr
	Partial   float64        // share of a head that is rotated, if the file does not say
	RopeBase  float64        // base of the frequencies, if the file does not say
	LocalBase float64        // base in layers with a window; 0: RopeBase
	LocalPart float64        // share of a head that is rotated there; 0: as in other layers
	Local     *plan.RopeAttr // for layers with a window; nil: Rope
	RopeParts [2]string      // what rope_parameters calls the parameters of layers without and with a window; empty: the usual names
	Unturned  []bool         // by layer, or nil: heads are not rotated
	Unrounded bool           // YaRN's bounds are fractions of pairs; GGUF has no key for it

	Act          plan.Activation // activation of the feed-forward layer
	XIELU        bool            // the activation is xIELU, whose parameters each layer has, instead of Act
	Curves       []plan.Curve    // by layer, its parameters, or nil: they are tensors
	QKVBias      bias            // biases of the projections to queries, keys and values
	OutBias      bias            // bias of the output projection of attention
	MLPBias      bias            // biases of the feed-forward layer
	HeadBias     bias            // bias of the head
	NormHead     bool            // the columns of the head are divided by their lengths
	QKNorm       qkNorm
	QKVBound     float64 // queries, keys and values are clamped to -QKVBound..QKVBound; 0: not at all
	OutGate      outGate
	Chunks       []int            // by layer, or nil: length of the chunks within which attention sees; 0: all
	Temper       *plan.TemperAttr // of queries; nil: none
	KeysAsValues bool             // keys before their norm are the values, in layers without a window
	AltUp        altUp
	Sparsity     []float64        // by layer, or nil: deviations above the mean from which gates are kept; -Inf: all are
	PerLayer     int              // width of per-layer embeddings; 0: none
	Sinks        bool             // attention has a sink for each head
	SinksFound   bool             // it has, in layers that have a tensor for them
	EachSinks    []bool           // by layer, or nil: Sinks
	Unseen       int              // first positions that attention does not see
	Learned      bool             // positions are learned and added to embeddings; heads are not rotated
	Latent       *Latent          // latent attention, or nil
	Compressed   *Compressed      // compressed attention, or nil
	Hyper        plan.ConnectAttr // hyper-connections

	Taps     int  // tokens that a short convolution reads, alone or before states
	ConvBias bias // its biases

	Limit                float64   // of the activations of the gated feed-forward layer and the shared expert, and of what they multiply; 0: none
	Limits, ExpertLimits []float64 // by layer, or nil: Limit, and that of experts

	Ungated  bool // the feed-forward layer has no gate
	Parallel bool // it has the same input as attention, in architectures with both kinds of layer

	EmbeddingScale float64 // multiplies embeddings
	ValueScale     float64 // multiplies values
	ResidualScale  float64 // multiplies outputs before they are added to the residual stream
	LogitScale     float64
	AttentionScale float64   // scale of scores; 0: 1/sqrt(HeadDim)
	EachScale      []float64 // by layer, or nil: AttentionScale
	AttentionCap   float64   // softcap of scores, 0: none
	LogitCap       float64   // softcap of logits, 0: none

	Mixture
	DeltaNet
	StateSpace
	Lightning
	Predicting int // layers after the last that predict tokens beyond the next one, see [multiToken]

	Encoder encoding
	Labels  int // of the head that classifies texts; 0: no such head
}

// A qkNorm says how queries and keys are normalized.
type qkNorm uint8

const (
	qkPlain      qkNorm = iota // not at all
	qkHeads                    // by head, before rotation
	qkWidth                    // all heads together, before rotation
	qkTurned                   // by head, after rotation
	qkEach                     // by head with a weight per head, before rotation
	qkEachTurned               // by head with a weight per head, after rotation
	qkFound                    // as qkHeads, in layers that have weights for it
)

// An outGate says what the result of attention is multiplied with before its projection.
type outGate uint8

const (
	ungatedOut   outGate = iota // nothing
	sigmoidGate                 // the sigmoid of a projection of attention's input, of a column for each element or for each head
	softplusGate                // its softplus
	queryGate                   // the sigmoid of further rows of the queries' weight, by head those after the query's
)

// at returns the specification of layer i, with the layer's own numbers.
func (s *Spec) at(i int) *Spec {
	l := *s
	for _, n := range []struct {
		each []int
		to   *int
	}{{s.EachFFN, &l.FFN}, {s.EachHeads, &l.Heads}, {s.EachKVHeads, &l.KVHeads}, {s.EachHeadDim, &l.HeadDim}} {
		if n.each != nil {
			*n.to = n.each[i]
		}
	}
	if s.EachSinks != nil {
		l.Sinks = s.EachSinks[i]
	}
	if s.EachScale != nil {
		l.AttentionScale = s.EachScale[i]
	}
	if s.Limits != nil {
		l.Limit = s.Limits[i]
	}
	if s.ExpertLimits != nil && s.ExpertLimits[i] > 0 {
		l.ExpertGLU.Limit, l.ExpertGLU.Late = s.ExpertLimits[i], true
	}
	if s.Sparse != nil && !s.Sparse[i] {
		l.Experts = 0
	}
	return &l
}

// ropeOf returns the rotation of layer i's heads, or nil for none.
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

// ggufSpec reads the keys of GGUF's specification.
func (c *config) ggufSpec(s *Spec) {
	s.Layers = c.integer("block_count", -1)
	s.Hidden = c.integer("embedding_length", -1)
	ffn := -1
	if c.has("expert_feed_forward_length") {
		ffn = c.integer("expert_feed_forward_length", -1)
	}
	s.FFN, s.EachFFN = c.each("feed_forward_length", s.Layers, ffn)
	s.Heads, s.EachHeads = c.each("attention.head_count", s.Layers, -1)
	s.Context = c.integer("context_length", -1)
	const rms, centered = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
	if s.Norm == plan.LayerNorm && (c.has(centered) || !c.has(rms)) {
		s.Eps = c.number(centered, -1)
	} else {
		s.Eps = c.number(rms, -1) // also beside the LayerNorms of some models
	}
	s.NormBias, s.QKVBias, s.OutBias, s.MLPBias = asFound, asFound, asFound, asFound
	s.KVHeads, s.EachKVHeads = c.each("attention.head_count_kv", s.Layers, s.Heads)
	if s.EachHeads != nil && !c.has("attention.head_count_kv") {
		s.EachKVHeads = s.EachHeads
	}
	s.HeadDim = c.integer("attention.key_length", s.Hidden/max(1, s.Heads))
	if v := c.integer("attention.value_length", s.HeadDim); v != s.HeadDim {
		s.ValueDim = v
	}
	s.ggufWindows(c, 0, 0)
	s.LocalBase = c.optional("rope.freq_base_swa")
}

// hubSpec reads config.json as written by transformers.
func (c *config) hubSpec(s *Spec) {
	s.Layers = c.integer("num_hidden_layers", -1)
	s.Hidden = c.integer("hidden_size", -1)
	s.Heads = c.integer("num_attention_heads", -1)
	s.FFN, s.EachFFN = c.each("intermediate_size", s.Layers, cmp.Or(c.ffn*s.Hidden, -1))
	s.Context = c.integer("max_position_embeddings", -1)
	s.Eps = c.number("rms_norm_eps", 1e-6)
	if s.Norm == plan.LayerNorm {
		s.Eps = c.number("rms_norm_eps", 1e-5)
	}
	s.NormBias, s.QKVBias, s.OutBias, s.MLPBias = required, without, without, without
	s.KVHeads = c.integer("num_key_value_heads", s.Heads)
	s.HeadDim = c.integer("head_dim", s.Hidden/max(1, s.Heads))
	s.Windows = make([]int, min(max(s.Layers, 0), maxLayers))
	if s.XIELU = c.text("hidden_act", "") == "xielu"; !s.XIELU {
		s.Act = c.activation("hidden_act", "silu")
	}
}

// activations are the values in config.json, by transformers' names.
var activations = map[string]plan.Activation{
	"silu": plan.SiLU, "swish": plan.SiLU, "gelu": plan.GELU, "gelu_new": plan.GELUTanh, "gelu_pytorch_tanh": plan.GELUTanh, "gelu_fast": plan.GELUTanh,
	"relu": plan.ReLU, "relu2": plan.ReLUSquared, "quick_gelu": plan.QuickGELU,
}

// activation returns the activation under key, or the one named def if there is none.
func (c *config) activation(key, def string) plan.Activation {
	name := c.text(key, def)
	act, ok := activations[name]
	if !ok {
		c.failf("%s is %q; the nearest known are %s", c.key(key), name, nearestOf(name, slices.Collect(maps.Keys(activations))))
	}
	return act
}

// maxLayers bounds the memory that a file can make the builder allocate.
const maxLayers = 4096

// windows sets a window of size for the layers for which sliding returns true.
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

// slidingLayers sets the window sliding_window for the layers that config.json's layer_types marks
// as sliding. Without layer_types, sliding decides.
func (s *Spec) slidingLayers(c *config, sliding func(layer int) bool) {
	if c.m.Type("sliding_window") == "null" {
		return
	}
	if kinds := c.kinds("layer_types", s, "full_attention", "sliding_attention"); kinds != nil {
		sliding = func(i int) bool { return strings.HasPrefix(kinds[i], "sliding") }
	}
	s.windows(sliding, func() int { return c.integer("sliding_window", defaultWindow) })
}

// kinds returns the kinds of all layers that config.json names under key, each one of two, or nil if
// it names none.
func (c *config) kinds(key string, s *Spec, one, other string) []string {
	kinds, ok := c.m.Strings(key)
	if !ok {
		return nil
	}
	if len(kinds) != s.Layers {
		c.failf("%s names %d layers of %d", key, len(kinds), s.Layers)
		return nil
	}
	for i, k := range kinds {
		if k != one && k != other {
			c.failf("%s[%d] is %q, want %q or %q", key, i, k, one, other)
		}
	}
	return kinds
}

// defaultWindow is transformers' value of a missing sliding_window; null means no window.
const defaultWindow = 4096

// ggufWindows sets the file's window, or def (0 for none), for all layers except every nth, or for
// all if nth is 0. The file may list the layers, or give nth itself.
func (s *Spec) ggufWindows(c *config, nth, def int) {
	const pattern = "attention.sliding_window_pattern"
	listed, ok := c.m.Bools(c.key(pattern))
	if list, _ := c.m.Ints(c.key(pattern)); len(list) == s.Layers && s.Layers > 1 {
		for _, n := range list { // some converters write numbers
			listed, ok = append(listed, n != 0), true
		}
	}
	switch {
	case !ok:
		nth = c.first(pattern, nth)
	case len(listed) != s.Layers && len(listed)+c.first("nextn_predict_layers", 0) != s.Layers:
		c.failf("%s has %d values for %d layers", c.key(pattern), len(listed), s.Layers)
		return
	}
	s.windows(func(i int) bool {
		if ok {
			return i < len(listed) && listed[i]
		}
		return nth == 0 || (i+1)%nth != 0
	}, func() int { return c.first("attention.sliding_window", def) })
}

// alternate sets a window for all layers except every nth, unless the file says which. def is for
// GGUF files without the keys.
func (s *Spec) alternate(c *config, nth, def int) {
	if c.gguf {
		s.ggufWindows(c, nth, def)
		return
	}
	s.slidingLayers(c, func(i int) bool { return (i+1)%c.integer("sliding_window_pattern", nth) != 0 })
}

// hasWindow reports whether the file has a window.
func (c *config) hasWindow() bool {
	if c.gguf {
		return c.first("attention.sliding_window", 0) > 0
	}
	return c.m.Type("sliding_window") != "null"
}

// turnWindows removes the rotation from layers without a window (Yang et al., "RoPE to NoPE and
// Back Again", 2025).
func (s *Spec) turnWindows() {
	s.Unturned = make([]bool, len(s.Windows))
	for i, w := range s.Windows {
		s.Unturned[i] = w == 0
	}
}

// predicting excludes the layers that predict tokens beyond the next one. GGUF counts them among
// the layers.
func (s *Spec) predicting(c *config) {
	if c.gguf {
		s.Predicting = min(c.first("nextn_predict_layers", 0), s.Layers)
		holds := func(name string) bool {
			_, ok := c.file.Tensor(fmt.Sprintf("blk.%d.%s.weight", s.Layers-s.Predicting, name))
			return ok
		}
		if holds("attn_norm") && !holds("nextn.eh_proj") {
			s.Predicting = 0 // the file has neither the layers nor counts them
		}
		s.Layers -= s.Predicting
	} else {
		s.Predicting = c.first("num_nextn_predict_layers", 0)
	}
}

// epsilon and headDim are for architectures whose config.json omits numbers that others have.
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

// attentionBias reads config.json's flag for biases of all projections of attention.
func attentionBias(c *config, s *Spec) {
	if !c.gguf && c.flag("attention_bias", false) {
		s.QKVBias, s.OutBias = required, required
	}
}

// mlpBias reads config.json's flag for biases of the feed-forward layer.
func mlpBias(c *config, s *Spec) {
	if !c.gguf && c.flag("mlp_bias", false) {
		s.MLPBias = required
	}
}

// first returns the number under key, which may be 0 like that of the first layer, or def.
func (c *config) first(key string, def int) int {
	if n, ok := c.m.Int(c.key(key)); ok && n == 0 {
		return 0
	}
	return c.integer(key, def)
}
