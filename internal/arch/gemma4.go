package arch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Gemma 4 (Google DeepMind, 2026, the model cards of google/gemma-4): Gemma 3's windows with wider
// heads in the layers without one, where the rotation leaves most pairs as they are and keys may
// also be the values. Values are normalized without weights, scores are not scaled, and each
// layer's output is multiplied by a number. Small models have per-layer embeddings, and their last
// layers share keys and values; the mixture has experts beside the feed-forward layer.
func init() {
	names := maps.Clone(sandwichNames)
	maps.Copy(names, perLayerNames)
	maps.Copy(names, map[string]string{
		"layer_output_scale": "*layers.#.layer_scalar.",
		"post_ffw_norm_1":    "*layers.#.post_feedforward_layernorm_1", "post_ffw_norm_2": "*layers.#.post_feedforward_layernorm_2",
		"pre_ffw_norm_2": "*layers.#.pre_feedforward_layernorm_2",
		"ffn_gate_inp":   "*layers.#.router.proj", "ffn_gate_inp.scale": "*layers.#.router.scale.", "ffn_down_exps.scale": "*layers.#.router.per_expert_scale.",
		"ffn_gate_up_exps": "*layers.#.experts.gate_up_proj.", "ffn_down_exps": "*layers.#.experts.down_proj.",
	})
	keys := maps.Clone(gemmaKeys)
	keys["num_experts_per_tok"] = "top_k_experts"
	for _, a := range []architecture{
		{gguf: "gemma4", hub: "Gemma4ForCausalLM", kind: "gemma4_text"},
		{hub: "Gemma4ForConditionalGeneration", kind: "gemma4"},
	} {
		a.title, a.about = "Gemma 4 (text)", "per-layer embeddings, layers that share keys and values, wider heads without windows, experts beside the feed-forward layer"
		a.keys, a.hubNames, a.adapt, a.block = keys, names, gemma4, gemma4Layer
		a.defaults = map[string]int{"sliding_window": 512, "head_dim": 256}
		register(a)
	}
}

// perLayerNames are the names of per-layer embeddings in checkpoints.
var perLayerNames = names{
	"per_layer_token_embd": "*embed_tokens_per_layer", "per_layer_model_proj": "*per_layer_model_projection", "per_layer_proj_norm": "*per_layer_projection_norm",
	"inp_gate": "*layers.#.per_layer_input_gate", "proj": "*layers.#.per_layer_projection", "post_norm": "*layers.#.post_per_layer_input_norm",
}

func gemma4(c *config, s *Spec) {
	s.EmbeddingScale = math.Sqrt(float64(s.Hidden))
	s.AttentionScale, s.Act = 1, plan.GELUTanh
	s.QKNorm = qkHeads
	s.LogitCap = c.softcap("final_logit_softcapping", 0)
	experts := c.first("expert_count", 0) > 0
	shared := "attention.shared_kv_layers"
	if c.gguf {
		s.ggufGemma4(c)
	} else {
		s.hubGemma4(c)
		experts, shared = c.flag("enable_moe_block", false), "num_kv_shared_layers"
	}
	if experts {
		s.mixture(c, Mixture{ExpertBias: without, Route: plan.RouteAttr{Used: 8, Normalize: true}})
	}
	s.shareKV(c, c.first(shared, 0))
	if n := len(s.KVFrom); !c.gguf && n > 0 && c.flag("use_double_wide_mlp", false) {
		for i, from := range s.KVFrom {
			s.EachFFN = append(s.EachFFN, s.FFN)
			if from != i {
				s.EachFFN[i] *= 2
			}
		}
	}
}

func (s *Spec) ggufGemma4(c *config) {
	s.PerLayer = c.first("embedding_length_per_layer_input", 0)
	s.LocalBase = c.number("rope.freq_base_swa", 1e4)
	full, local := s.HeadDim, c.integer("attention.key_length_swa", s.HeadDim)
	s.gemma4Heads(c, func(i int) (heads, dim int) {
		if s.Windows[i] > 0 {
			return 0, local
		}
		return 0, full
	})
}

func (s *Spec) hubGemma4(c *config) {
	s.Act = c.activation("hidden_act", "gelu_pytorch_tanh")
	s.headDim(c, 256)
	attentionBias(c, s)
	if how := c.text("use_bidirectional_attention", "vision"); how != "vision" {
		c.failf("use_bidirectional_attention is %q; only text that attends to the past is supported", how)
	}
	if !c.hasAny("rope_parameters.") {
		c.failf("rope_parameters is missing")
	}
	if s.PerLayer = c.first("hidden_size_per_layer_input", 256); c.m.Type("hidden_size_per_layer_input") == "null" {
		s.PerLayer = 0
	}
	s.slidingLayers(c, func(i int) bool { return (i+1)%6 != 0 })
	if n := len(s.Windows); n > 0 {
		s.Windows[n-1] = 0
	}
	s.KeysAsValues = c.flag("attention_k_eq_v", false)
	const each = "per_layer_config"
	if c.hasAny(each + ".") {
		for _, key := range c.m.Keys() {
			if own, ok := strings.CutPrefix(key, each+"."); ok && !strings.HasSuffix(own, ".head_dim") && !strings.HasSuffix(own, ".num_key_value_heads") {
				c.failf("%s is set; supported are head_dim and num_key_value_heads", key)
			}
		}
		s.gemma4Heads(c, func(i int) (heads, dim int) {
			at := each + "." + strconv.Itoa(i) + "."
			return c.integer(at+"num_key_value_heads", s.KVHeads), c.integer(at+"head_dim", s.HeadDim)
		})
		return
	}
	heads, dim := s.KVHeads, c.integer("global_head_dim", 512)
	if s.KeysAsValues {
		heads = c.integer("num_global_key_value_heads", heads)
	}
	s.gemma4Heads(c, func(i int) (int, int) {
		if s.Windows[i] > 0 {
			return s.KVHeads, s.HeadDim
		}
		return heads, dim
	})
}

// gemma4Heads sets the key/value heads, unless they are 0, and the width of heads of each layer.
// Layers with a window have one width, and so have those without.
func (s *Spec) gemma4Heads(c *config, of func(layer int) (heads, dim int)) {
	widths := map[bool]int{}
	for i, w := range s.Windows {
		heads, dim := of(i)
		if heads > 0 {
			s.EachKVHeads = append(s.EachKVHeads, heads)
		}
		s.EachHeadDim = append(s.EachHeadDim, dim)
		if known := widths[w > 0]; known > 0 && known != dim {
			c.failf("layer %d has heads of %d, want %d as in other layers of its kind", i, dim, known)
		}
		widths[w > 0] = dim
	}
	s.Rope.HeadDim = widths[false]
	s.HeadDim = cmp.Or(widths[true], widths[false], 1)
	if s.Rope.HeadDim == 0 {
		c.failf("every layer has a window; supported are models with a layer that sees the whole past")
	}
}

func gemma4Layer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	y := valueNormed(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden))
	x = b.Add(x, norm(b, s, w, y, "post_attention_norm", s.Hidden))
	y = glu(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden), "", s.FFN)
	if s.Experts > 0 {
		y = b.Add(norm(b, s, w, y, "post_ffw_norm_1", s.Hidden), norm(b, s, w, gemma4Experts(b, s, w, x), "post_ffw_norm_2", s.Hidden))
	}
	x = b.Add(x, norm(b, s, w, y, "post_ffw_norm", s.Hidden))
	if s.PerLayer > 0 {
		x = b.Add(x, perLayer(b, s, w, x))
	}
	return b.Scale(x, w.scalar("layer_output_scale"))
}

// valueNormed is attention with values that are normalized without weights. Keys before their norm
// are the values of a layer that has no projection to values.
func valueNormed(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	q := heads(b, s, w, linear(b, w, x, "attn_q", s.Heads*s.HeadDim, s.QKVBias), "attn_q_norm")
	if from := s.kvLayer(w.index); from != w.index {
		for _, unused := range []string{"attn_k", "attn_v", "attn_k_norm"} { // some checkpoints have them
			w.ignore(unused)
		}
		return output(b, s, w, attendedTo(b, s, w, q, from))
	}
	k := linear(b, w, x, "attn_k", s.KVHeads*s.HeadDim, s.QKVBias)
	v := k
	if asValues := s.KeysAsValues && s.Windows[w.index] == 0 || !w.hub && !w.has("attn_v"); !asValues {
		v = linear(b, w, x, "attn_v", s.KVHeads*s.HeadDim, s.QKVBias)
	}
	return output(b, s, w, attended(b, s, w, q, heads(b, s, w, k, "attn_k_norm"), b.RMSNorm(v, ones(s.HeadDim), s.Eps)))
}

// gemma4Experts routes by the residual stream itself, normalized, and gives it to the experts with
// another norm.
func gemma4Experts(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	scale := w.named(w.name("ffn_gate_inp", ".scale"))
	values, err := scale.Float32s()
	if err != nil || len(values) != s.Hidden {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d]", ErrTensor, scale.Name, scale.Shape, s.Hidden))
	}
	for i := range values {
		values[i] /= float32(math.Sqrt(float64(s.Hidden)))
	}
	logits := linear(b, w, b.RMSNorm(x, vectorOf(scale.Name, values), s.Eps), "ffn_gate_inp", s.Experts, without)
	var scales *tensor.Tensor
	if name := w.name("ffn_down_exps", ".scale"); w.hub || w.find(name) != nil {
		scales = w.named(name)
	}
	return routed(b, s, w, norm(b, s, w, x, "pre_ffw_norm_2", s.Hidden), logits, scales)
}

// perLayer returns what per-layer embeddings add to the residual stream x: the layer's part of a
// further table, added to a projection of the token's embedding and gated by x.
func perLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	gate := linear(b, w, x, "inp_gate", s.PerLayer, without)
	y := linear(b, w, b.GLU(gate, perLayerInput(b, s, w), plan.GLUAttr{Act: s.Act}), "proj", s.Hidden, without)
	return norm(b, s, w, y, "post_norm", s.Hidden)
}

// perLayerInput returns the layer's input of per-layer embeddings.
func perLayerInput(b *plan.Builder, s *Spec, w layer) plan.Value {
	top, n, lo := layer{w.weights, noLayer}, s.PerLayer, w.index*s.PerLayer
	table, all := top.weight("per_layer_token_embd"), top.weight("per_layer_model_proj")
	if len(table.Shape) != 2 || table.Shape[1] != s.Layers*n || len(all.Shape) != 2 || all.Shape[0] != s.Layers*n {
		b.Fail(fmt.Errorf("%w: %s and %s have shapes %v and %v, want %d columns and rows", ErrTensor, table.Name, all.Name, table.Shape, all.Shape, s.Layers*n))
	}
	part := all.RowSlice(lo, lo+n)
	part.Name = fmt.Sprintf("%s[%d:%d]", all.Name, lo, lo+n)
	y := b.Scale(b.Linear(w.embedded, part, nil), 1/math.Sqrt(float64(s.Hidden)))
	y = norm(b, s, top, y, "per_layer_proj_norm", n)
	return b.Scale(b.Add(y, b.Scale(b.EmbedPart(table, lo, n), math.Sqrt(float64(n)))), math.Sqrt2/2)
}
