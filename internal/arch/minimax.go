package arch

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// MiniMax-Text-01 and MiniMax-M1 (MiniMax, "MiniMax-01: Scaling Foundation Models with Lightning
// Attention", 2025): linear attention with a fixed decay for each head in seven of eight layers,
// ordinary attention in the eighth, and experts. The stream and the results that are added to it are
// multiplied by constants, and with postnorm the stream is what the norm before each part returns.
// MiniMax's own checkpoints name the constants and the kinds of layers otherwise than those of
// transformers.
func init() {
	a := architecture{
		title: "MiniMax-Text-01", about: "linear attention with a fixed decay for each head, ordinary attention in some layers; experts by softmax",
		hub: "MiniMaxForCausalLM", kind: "minimax", adapt: minimax, block: minimaxLayer,
		hubNames: with(blockSparse, names{
			"lightning_qkv":  "*layers.#.self_attn.qkv_proj",
			"lightning_norm": "*layers.#.self_attn.norm",
			"lightning_gate": "*layers.#.self_attn.output_gate",
			"lightning_out":  "*layers.#.self_attn.out_proj",

			"slopes":         "*layers.#.self_attn.slope_rate.",
			"query_decay":    "*layers.#.self_attn.query_decay.",
			"key_decay":      "*layers.#.self_attn.key_decay.",
			"diagonal_decay": "*layers.#.self_attn.diagonal_decay.",
		}),
		layouts:  map[string]layout{"lightning_qkv": valuesFirst},
		defaults: map[string]int{"num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 131072},
	}
	register(a)
	a.keys = map[string]string{
		"full_attn_alpha_factor": "layernorm_full_attention_alpha", "full_attn_beta_factor": "layernorm_full_attention_beta",
		"linear_attn_alpha_factor": "layernorm_linear_attention_alpha", "linear_attn_beta_factor": "layernorm_linear_attention_beta",
		"mlp_alpha_factor": "layernorm_mlp_alpha", "mlp_beta_factor": "layernorm_mlp_beta",
	}
	a.adapt = minimaxText01
	a.title, a.hub, a.kind = "MiniMax-Text-01, MiniMax's own files", "MiniMaxText01ForCausalLM", "minimax_text_01"
	register(a)
	a.title, a.hub, a.kind = "MiniMax-M1", "MiniMaxM1ForCausalLM", "minimax_m1"
	register(a)
}

// Lightning holds what is special in models with lightning attention.
type Lightning struct {
	Normed            bool        // the residual stream is what norms return
	Full, Linear, FFN streamScale // by part of a layer
}

// A streamScale holds the factors of the stream and of the result that is added to it.
type streamScale struct{ stream, result float64 }

func minimax(c *config, s *Spec) {
	kinds := c.kinds("layer_types", s, "full_attention", "linear_attention")
	s.stateLayers(func(i int) bool {
		if kinds == nil {
			return i%2 == 1
		}
		return kinds[i] == "linear_attention"
	})
	s.lightning(c, true)
}

// minimaxText01 reads the keys of MiniMax's own files.
func minimaxText01(c *config, s *Spec) {
	key := "attn_type_list"
	if !c.has(key) && c.has("decoder_attention_types") {
		key = "decoder_attention_types"
	}
	kinds, _ := c.m.Ints(key) // 0: linear
	if c.has(key) && len(kinds) != s.Layers {
		c.failf("%s has %d numbers for %d layers", key, len(kinds), s.Layers)
		return
	}
	for i, k := range kinds {
		if k != 0 && k != 1 {
			c.failf("%s[%d] is %d, want 0 or 1", key, i, k)
		}
	}
	s.stateLayers(func(i int) bool { return kinds != nil && kinds[i] == 0 })
	if bits.OnesCount(uint(s.Heads)) != 1 {
		c.failf("num_attention_heads is %d; decays are known for powers of 2", s.Heads)
	}
	s.lightning(c, false)
}

// lightning reads what both kinds of files have. normed is for files that do not say.
func (s *Spec) lightning(c *config, normed bool) {
	s.epsilon(c, 1e-5)
	s.RopeBase = 1e6
	s.Partial = float64(c.integer("rotary_dim", s.HeadDim)) / float64(max(1, s.HeadDim))
	if c.has("sliding_window") {
		s.windows(func(i int) bool { return !s.Recurrent[i] }, func() int { return c.integer("sliding_window", 0) })
	}
	scale := func(part string) streamScale {
		return streamScale{c.number(part+"_alpha_factor", 1), c.number(part+"_beta_factor", 1)}
	}
	s.Lightning = Lightning{Normed: c.flag("postnorm", normed), Full: scale("full_attn"), Linear: scale("linear_attn"), FFN: scale("mlp")}
	s.mixture(c, mixtralExperts)
	if s.SharedFFN > 0 {
		c.failf("shared_intermediate_size is %d; supported are models without shared experts", s.SharedFFN)
	}
}

// minimaxLayer adds the results of attention and of experts to the stream, or to its norm.
func minimaxLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	sum := func(f streamScale, normed, y plan.Value) plan.Value {
		if s.Normed {
			x = normed
		}
		return b.Add(b.Scale(x, f.stream), b.Scale(y, f.result))
	}
	h := norm(b, s, w, x, "attn_norm", s.Hidden)
	if s.Recurrent[w.index] {
		x = sum(s.Linear, h, lightning(b, s, w, h))
	} else {
		x = sum(s.Full, h, attention(b, s, w, h))
	}
	h = norm(b, s, w, x, "ffn_norm", s.Hidden)
	return sum(s.Lightning.FFN, h, feedForward(b, s, w, h))
}

// lightning is linear attention over activations of queries, keys and values, a norm of all heads
// together, and a gate.
func lightning(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	const eps = 1e-6 // of the norm, which does not follow the configuration's
	for _, short := range []string{"slopes", "query_decay", "key_decay", "diagonal_decay"} {
		w.ignore(short)
	}
	width := s.Heads * s.HeadDim
	y := b.Retention(b.Activate(linear(b, w, x, "lightning_qkv", 3*width, without), s.Act), decaysOf(s, w.index), fmt.Sprintf("linear.%d", w.index),
		plan.StateSpaceAttr{Heads: s.Heads, HeadDim: s.HeadDim, Groups: s.Heads, States: s.HeadDim})
	y = b.RMSNorm(y, w.weight("lightning_norm"), eps)
	y = b.GLU(linear(b, w, x, "lightning_gate", width, without), y, plan.GLUAttr{Act: plan.Sigmoid})
	return linear(b, w, y, "lightning_out", s.Hidden, without)
}

// decaysOf returns the logarithms of the decays of a layer's heads: the slopes of ALiBi (Press, Smith
// and Lewis, "Train Short, Test Long", 2022), which shrink from layer to layer. Files may hold them
// too, rounded.
func decaysOf(s *Spec, layer int) *tensor.Tensor {
	factor := 1 - float64(layer)/(float64(s.Layers-1)+1e-5) + 1e-5
	values := make([]float32, s.Heads)
	for h := range values {
		values[h] = float32(-factor * math.Exp2(-8*float64(h+1)/float64(s.Heads)))
	}
	return vectorOf(fmt.Sprintf("decays of layer %d", layer), values)
}

// valuesFirst converts a weight with a query, a key and a value for each head to one with all values,
// then all keys, then all queries.
func valuesFirst(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if rows := 3 * s.Heads * s.HeadDim; len(t.Shape) != 2 || t.Shape[0] != rows {
		return nil, fmt.Errorf("%w: %s has shape %v, want %d rows by the configuration", ErrTensor, t.Name, t.Shape, rows)
	}
	var blocks []int
	for part := 2; part >= 0; part-- {
		for h := range s.Heads {
			blocks = append(blocks, 3*h+part)
		}
	}
	return reordered(t, blocks, s.HeadDim)
}
