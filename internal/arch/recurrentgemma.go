package arch

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// RecurrentGemma (De et al., "Griffin: Mixing Gated Linear Recurrences with Local Attention for
// Efficient Language Models", 2024; Botev et al., "RecurrentGemma: Moving Past Transformers for
// Efficient Open Language Models", 2024): two of three layers have a linear recurrence whose gates are
// products by head, behind a short convolution; the third has attention within a window. The window
// is transformers'; in its authors' code a token sees one more.
func init() {
	register(architecture{
		title: "RecurrentGemma", about: "gated linear recurrences behind short convolutions in two of three layers, attention within a window in the third",
		hub: "RecurrentGemmaForCausalLM", kind: "recurrent_gemma", adapt: recurrentGemma, block: griffin,
		hubNames: names{
			"output_norm": "*final_norm",
			"attn_norm":   "*layers.#.temporal_pre_norm",
			"attn_q":      "*layers.#.temporal_block.q_proj",
			"attn_k":      "*layers.#.temporal_block.k_proj",
			"attn_v":      "*layers.#.temporal_block.v_proj",
			"attn_output": "*layers.#.temporal_block.o_proj",
			"ffn_norm":    "*layers.#.channel_pre_norm",
			"ffn_gate":    "*layers.#.mlp_block.gate_proj",
			"ffn_up":      "*layers.#.mlp_block.up_proj",
			"ffn_down":    "*layers.#.mlp_block.down_proj",

			"lru_in":         "*layers.#.temporal_block.linear_x",
			"lru_gate":       "*layers.#.temporal_block.linear_y",
			"lru_out":        "*layers.#.temporal_block.linear_out",
			"lru_conv":       "*layers.#.temporal_block.conv_1d",
			"lru_rate":       "*layers.#.temporal_block.rg_lru.recurrent_param.",
			"lru_input":      "*layers.#.temporal_block.rg_lru.input_gate_weight.",
			"lru_input.bias": "*layers.#.temporal_block.rg_lru.input_gate_bias.",
			"lru_decay":      "*layers.#.temporal_block.rg_lru.recurrent_gate_weight.",
			"lru_decay.bias": "*layers.#.temporal_block.rg_lru.recurrent_gate_bias.",
		},
		layouts: map[string]layout{"lru_conv": squeezed},
		keys:    map[string]string{"hidden_act": "hidden_activation", "sliding_window": "attention_window_size"},
		defaults: map[string]int{
			"num_hidden_layers": 26, "hidden_size": 2560, "intermediate_size": 7680, "num_attention_heads": 10, "max_position_embeddings": unlimited,
		},
	})
}

func recurrentGemma(c *config, s *Spec) {
	s.Act = c.activation("hidden_act", "gelu_pytorch_tanh")
	s.FFN /= 2
	s.HeadDim, s.Partial = s.Hidden/max(1, s.Heads), 0.5
	s.NormPlus, s.LogitCap = 1, c.number("logits_soft_cap", 30)
	s.EmbeddingScale = inBF16(math.Sqrt(float64(s.Hidden)))
	attentionBias(c, s)
	s.OutBias, s.MLPBias, s.ConvBias = required, required, required
	s.Inner, s.Taps = c.integer("lru_width", s.Hidden), c.integer("conv1d_width", 4)
	if s.Heads*s.HeadDim != s.Hidden || s.Inner%max(1, s.Heads) != 0 {
		c.failf("%d heads cannot share a hidden_size of %d and an lru_width of %d", s.Heads, s.Hidden, s.Inner)
	}
	kinds, ok := c.m.Strings("block_types")
	if !ok {
		kinds = []string{"recurrent", "recurrent", "attention"}
	}
	for i, k := range kinds {
		if k != "recurrent" && k != "attention" {
			c.failf("block_types[%d] is %q, want %q or %q", i, k, "recurrent", "attention")
		}
	}
	if len(kinds) == 0 {
		c.failf("block_types is an empty list")
		return
	}
	s.stateLayers(func(i int) bool { return kinds[i%len(kinds)] == "recurrent" })
	s.windows(func(i int) bool { return !s.Recurrent[i] }, func() int { return c.integer("sliding_window", 2048) })
}

// inBF16 rounds x to a BF16, as transformers does with the scale of embeddings.
func inBF16(x float64) float64 {
	bits := math.Float32bits(float32(x))
	bits += 1<<15 - 1 + bits>>16&1
	return float64(math.Float32frombits(bits &^ (1<<16 - 1)))
}

// griffin is prenorm with a recurrence in place of attention in some layers.
func griffin(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	mix := attention
	if s.Recurrent[w.index] {
		mix = recurrence
	}
	x = b.Add(x, mix(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)))
	return b.Add(x, feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)))
}

// recurrence convolves a projection of x over tokens, applies the linear recurrent unit to it, and
// multiplies the result with the activations of another projection.
func recurrence(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	u := convolution(b, s, w, linear(b, w, x, "lru_in", s.Inner, required), "lru_conv")
	state := b.State(plan.State{Name: fmt.Sprintf("lru.%d", w.index), Kind: plan.PerSequence, Size: s.Inner})
	y := b.LRU(u, b.HeadLinear(u, w.gateOfHeads(s, "lru_input")), b.HeadLinear(u, w.gateOfHeads(s, "lru_decay")), state, plan.LRUAttr{
		Rate: w.weight("lru_rate"), InputBias: flat(w.bias("lru_input", required)), DecayBias: flat(w.bias("lru_decay", required)),
	})
	gate := linear(b, w, x, "lru_gate", s.Inner, required)
	return linear(b, w, b.GLU(gate, y, plan.GLUAttr{Act: s.Act}), "lru_out", s.Hidden, required)
}

// gateOfHeads returns the weights of a gate by head, which files have transposed.
func (l layer) gateOfHeads(s *Spec, short string) []*tensor.Tensor {
	var all []*tensor.Tensor
	width := s.Inner / s.Heads
	for _, t := range l.byHead(short, s.Heads, width, width) {
		all = append(all, l.turnedOver(t, width))
	}
	return all
}
