package arch

import "github.com/realizar/realizar/internal/plan"

// OLMo Hybrid (Ai2, "Olmo Hybrid", 2026): three of four layers have a gated delta net and norms
// before each part, the others are OLMo 3's without windows. The rates of delta nets may reach 2,
// and heads are rotated only if the file has a base for it.
func init() {
	register(architecture{
		title: "OLMo Hybrid", about: "gated delta nets in three of four layers, OLMo 3's attention in the others",
		hub: "OlmoHybridForCausalLM", kind: "olmo_hybrid", adapt: olmoHybrid, block: olmoHybridLayer,
		hubNames: names{
			"attn_norm":           "*layers.#.attention_layer_norm",
			"ffn_norm":            "*layers.#.feedforward_layer_norm",
			"post_attention_norm": "*layers.#.post_attention_layernorm",
			"post_ffw_norm":       "*layers.#.post_feedforward_layernorm",

			"delta_q":      "*layers.#.linear_attn.q_proj",
			"delta_k":      "*layers.#.linear_attn.k_proj",
			"delta_v":      "*layers.#.linear_attn.v_proj",
			"attn_gate":    "*layers.#.linear_attn.g_proj",
			"ssm_beta":     "*layers.#.linear_attn.b_proj",
			"ssm_alpha":    "*layers.#.linear_attn.a_proj",
			"ssm_conv1d_q": "*layers.#.linear_attn.q_conv1d",
			"ssm_conv1d_k": "*layers.#.linear_attn.k_conv1d",
			"ssm_conv1d_v": "*layers.#.linear_attn.v_conv1d",
			"ssm_a":        "*layers.#.linear_attn.A_log.",
			"ssm_dt":       "*layers.#.linear_attn.dt_bias.",
			"ssm_norm":     "*layers.#.linear_attn.o_norm",
			"ssm_out":      "*layers.#.linear_attn.o_proj",
		},
		defaults: map[string]int{"linear_conv_kernel_dim": 4},
	})
}

func olmoHybrid(c *config, s *Spec) {
	s.QKNorm = qkWidth
	attentionBias(c, s)
	keys := c.integer("linear_num_key_heads", s.Heads)
	width := c.integer("linear_key_head_dim", max(1, 3*s.Hidden/4/keys))
	s.deltaNet(c, plan.DeltaAttr{KeyHeads: keys, Heads: s.Heads, KeyDim: width, ValueDim: 2 * width})
	s.DeltaEps = 1e-5
	if c.flag("linear_allow_neg_eigval", true) {
		s.Delta.Beta = 2
	}
	if !c.has("rope_parameters.rope_theta") && !c.has("rope_theta") {
		s.Unturned = make([]bool, len(s.Recurrent))
		for i := range s.Unturned {
			s.Unturned[i] = true
		}
	}
}

// olmoHybridLayer has norms before the parts of a layer with a delta net, and after those of a
// layer with attention. Some files name the norm after attention as that before a feed-forward
// layer.
func olmoHybridLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if s.Recurrent[w.index] {
		return hybrid(b, s, w, x)
	}
	first := "post_attention_norm"
	if !w.has(first) && w.has("ffn_norm") {
		first = "ffn_norm"
	}
	x = b.Add(x, norm(b, s, w, attention(b, s, w, x), first, s.Hidden))
	return b.Add(x, norm(b, s, w, feedForward(b, s, w, x), "post_ffw_norm", s.Hidden))
}
