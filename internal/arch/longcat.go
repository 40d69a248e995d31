package arch

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// LongCat-Flash (Meituan LongCat Team, "LongCat-Flash Technical Report", 2025): a layer has latent
// attention and a feed-forward layer twice. Its experts read what the first feed-forward layer
// reads, and are added at the layer's end; some of them return their input. Queries and latent rows
// are scaled by the widths that they are made from. The layer that predicts further tokens is
// omitted.
func init() {
	register(architecture{
		title: "LongCat-Flash", about: "two latent attentions and feed-forward layers a layer; experts beside the second, some of which return their input",
		hub: "LongcatFlashForCausalLM", kind: "longcat_flash", adapt: longcat, block: longcatLayer,
		hubNames: longcatNames,
		keys: map[string]string{
			"num_hidden_layers": "num_layers", "intermediate_size": "ffn_hidden_size",
			"num_experts_per_tok": "moe_topk", "moe_intermediate_size": "expert_ffn_hidden_size",
		},
		defaults: latentDefaults,
	})
}

// longcatNames have %d where the number of a layer's half stands.
var longcatNames = names{
	"attn_norm":      "*layers.#.input_layernorm.%d",
	"attn_q":         "*layers.#.self_attn.%d.q_proj",
	"attn_q_a":       "*layers.#.self_attn.%d.q_a_proj",
	"attn_q_a_norm":  "*layers.#.self_attn.%d.q_a_layernorm",
	"attn_q_b":       "*layers.#.self_attn.%d.q_b_proj",
	"attn_kv_a_mqa":  "*layers.#.self_attn.%d.kv_a_proj_with_mqa",
	"attn_kv_a_norm": "*layers.#.self_attn.%d.kv_a_layernorm",
	"attn_kv_b":      "*layers.#.self_attn.%d.kv_b_proj",
	"attn_output":    "*layers.#.self_attn.%d.o_proj",
	"ffn_norm":       "*layers.#.post_attention_layernorm.%d",
	"ffn_gate":       "*layers.#.mlps.%d.gate_proj",
	"ffn_up":         "*layers.#.mlps.%d.up_proj",
	"ffn_down":       "*layers.#.mlps.%d.down_proj",

	"ffn_gate_inp": "*layers.#.mlp.router.classifier",
	"exp_probs_b":  "*layers.#.mlp.router.e_score_correction_bias.",
}

func longcat(c *config, s *Spec) {
	s.epsilon(c, 1e-5)
	s.RopeBase = 1e7
	l := s.latent(c, 1536)
	s.yarnScores(c)
	s.Rope.Interleaved = true
	for _, key := range []string{"mla_scale_q_lora", "mla_scale_kv_lora"} {
		c.only(key, true)
	}
	if l.QueryRank == 0 {
		c.failf("q_lora_rank is null; supported are queries computed from a row of their own")
	}
	s.AttentionScale *= math.Sqrt(float64(s.Hidden) / float64(max(1, l.QueryRank)))
	l.Scale = math.Sqrt(float64(s.Hidden) / float64(l.Rank))
	c.only("router_bias", false)
	if kind := c.text("zero_expert_type", "identity"); kind != "identity" {
		c.failf("zero_expert_type is %q; supported is %q", kind, "identity")
	}
	s.mixture(c, Mixture{
		Experts: 512, ExpertFFN: 2048, Identity: c.first("zero_expert_num", 256), ChoiceBias: required,
		Route: plan.RouteAttr{Used: 12, Score: plan.SoftmaxAll, Scale: 6},
	})
	s.Route.Normalize = false
}

// half returns the tensors of one half of a layer.
func (l layer) half(i int) layer {
	w := *l.weights
	w.names = maps.Clone(l.names)
	for short, name := range w.names {
		w.names[short] = strings.ReplaceAll(name, "%d", fmt.Sprint(i))
	}
	return layer{&w, l.index}
}

func longcatLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	for e := range s.Identity { // transformers writes gates that it does not use
		for _, short := range []string{"ffn_gate_exp", "ffn_up_exp"} {
			w.find(w.numbered(short, ".weight", s.Experts+e))
		}
	}
	var mixed plan.Value
	for i := range 2 {
		half := w.half(i)
		h := norm(b, s, half, x, "attn_norm", s.Hidden)
		x = b.Add(x, latentAttention(b, s, half, h, fmt.Sprintf("kv.%d.%d", w.index, i)))
		h = norm(b, s, half, x, "ffn_norm", s.Hidden)
		if i == 0 {
			mixed = experts(b, s, w, h)
		}
		x = b.Add(x, glu(b, s, half, h, "", s.FFN))
	}
	return b.Add(x, mixed)
}
