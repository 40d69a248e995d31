package arch

import (
	"maps"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// LFM2 (Liquid AI, "LFM2 Technical Report", 2025): most layers have a gated short convolution in
// place of attention. The mixture has experts in all but the first layers, chosen by sigmoids and a
// bias. In GGUF a layer without attention has no key/value heads.
func init() {
	names := names{
		"output_norm": "*embedding_norm", "attn_norm": "*layers.#.operator_norm", "ffn_norm": "*layers.#.ffn_norm",
		"attn_output": "*layers.#.self_attn.out_proj", "attn_q_norm": "*layers.#.self_attn.q_layernorm", "attn_k_norm": "*layers.#.self_attn.k_layernorm",
		"shortconv.in_proj": "*layers.#.conv.in_proj", "shortconv.conv": "*layers.#.conv.conv", "shortconv.out_proj": "*layers.#.conv.out_proj",
		"ffn_gate": "*layers.#.feed_forward.w1", "ffn_up": "*layers.#.feed_forward.w3", "ffn_down": "*layers.#.feed_forward.w2",
	}
	lfm2 := architecture{
		title: "LFM2", about: "gated short convolutions in place of attention in most layers, normalised queries and keys",
		gguf: "lfm2", hub: "Lfm2ForCausalLM", kind: "lfm2", adapt: lfm2, block: lfm2Layer, zeros: true,
		hubNames: names, ggufNames: map[string]string{"output_norm": "token_embd_norm"},
		layouts:  map[string]layout{"shortconv.conv": squeezed},
		keys:     map[string]string{"rms_norm_eps": "norm_eps", "intermediate_size": "block_ff_dim", "first_k_dense_replace": "num_dense_layers", "rope_theta": "theta"},
		defaults: map[string]int{"intermediate_size": 12288},
	}
	register(lfm2)

	lfm2.title, lfm2.about = "LFM2 MoE", "LFM2 with experts by sigmoid with a bias to choose by; the first layers dense"
	lfm2.gguf, lfm2.hub, lfm2.kind, lfm2.adapt = "lfm2moe", "Lfm2MoeForCausalLM", "lfm2_moe", lfm2moe
	lfm2.hubNames = maps.Clone(names)
	maps.Copy(lfm2.hubNames, map[string]string{
		"ffn_gate_inp": "*layers.#.feed_forward.gate", "exp_probs_b": "*layers.#.feed_forward.expert_bias.",
		"ffn_gate_exp": "*layers.#.feed_forward.experts.@.w1", "ffn_up_exp": "*layers.#.feed_forward.experts.@.w3", "ffn_down_exp": "*layers.#.feed_forward.experts.@.w2",
		"ffn_gate_up_exps": "*layers.#.feed_forward.experts.gate_up_proj.", "ffn_down_exps": "*layers.#.feed_forward.experts.down_proj.",
	})
	lfm2.defaults = map[string]int{"intermediate_size": 7168, "first_k_dense_replace": 2}
	register(lfm2)
}

func lfm2(c *config, s *Spec) {
	lfm2Layers(c, s)
	if c.gguf || !c.flag("block_auto_adjust_ff_dim", true) {
		return
	}
	s.FFN = 2 * s.FFN / 3
	if c.m.Type("block_ffn_dim_multiplier") != "null" {
		s.FFN = int(c.number("block_ffn_dim_multiplier", 1) * float64(s.FFN))
		of := c.integer("block_multiple_of", 256)
		s.FFN = (s.FFN + of - 1) / of * of
	}
}

func lfm2moe(c *config, s *Spec) {
	lfm2Layers(c, s)
	choice := required
	if !c.flag("use_expert_bias", true) {
		choice = without
	}
	s.mixture(c, Mixture{
		Experts: 32, ExpertFFN: 1792, ChoiceBias: choice,
		Route: plan.RouteAttr{Used: 4, Score: plan.SigmoidEach, Normalize: true},
	})
}

// lfm2Layers reads which layers have attention, and what both forms have.
func lfm2Layers(c *config, s *Spec) {
	s.QKNorm, s.ConvBias = qkHeads, asFound
	if c.gguf {
		s.Taps = c.integer("shortconv.l_cache", -1)
		s.headless()
		return
	}
	s.epsilon(c, 1e-5)
	s.RopeBase = 1e6
	s.Taps, s.ConvBias = c.integer("conv_L_cache", 3), without
	if c.flag("conv_bias", false) {
		s.ConvBias = required
	}
	attends := func(int) bool { return true }
	if kinds := c.kinds("layer_types", s, "full_attention", "conv"); kinds != nil {
		attends = func(i int) bool { return kinds[i] == "full_attention" }
	} else if list, ok := c.m.Ints("full_attn_idxs"); ok {
		attends = func(i int) bool { return slices.Contains(list, int64(i)) }
	}
	s.stateLayers(func(i int) bool { return !attends(i) })
}

func lfm2Layer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	mix := attention
	if s.Recurrent[w.index] {
		mix = shortConv
	}
	x = b.Add(x, mix(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)))
	return b.Add(x, feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)))
}
