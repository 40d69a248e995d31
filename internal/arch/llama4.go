package arch

import (
	"maps"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// Llama 4 (Meta, 2025, the model card of meta-llama/Llama-4-Scout-17B-16E): three of four layers
// attend within chunks of the context and rotate heads, which may be normalized after it without
// weights. The fourth attends to the whole past without rotation, with queries that grow with the
// position. An expert's weight, a sigmoid, multiplies its input; a shared expert is beside it.
func init() {
	hubNames := names{
		"ffn_gate": "*layers.#.feed_forward.gate_proj", "ffn_up": "*layers.#.feed_forward.up_proj", "ffn_down": "*layers.#.feed_forward.down_proj",
		"ffn_gate_inp":       "*layers.#.feed_forward.router",
		"ffn_gate_up_exps_t": "*layers.#.feed_forward.experts.gate_up_proj.", "ffn_down_exps_t": "*layers.#.feed_forward.experts.down_proj.",
		"ffn_gate_exp": "*layers.#.feed_forward.experts.@.gate_proj", "ffn_up_exp": "*layers.#.feed_forward.experts.@.up_proj", "ffn_down_exp": "*layers.#.feed_forward.experts.@.down_proj",
	}
	for _, part := range []string{"gate", "up", "down"} {
		hubNames["ffn_"+part+"_shexp"] = "*layers.#.feed_forward.shared_expert." + part + "_proj"
	}
	for _, a := range []architecture{
		{gguf: "llama4", hub: "Llama4ForCausalLM", kind: "llama4_text"},
		{hub: "Llama4ForConditionalGeneration", kind: "llama4"},
	} {
		a.title, a.about = "Llama 4 (text)", "attention within chunks in three of four layers, no positions in the fourth; experts weighted before they compute"
		a.hubNames, a.adapt, a.block = maps.Clone(hubNames), llama4, llama4Layer
		a.keys = map[string]string{"intermediate_size": "intermediate_size_mlp", "moe_intermediate_size": "intermediate_size"}
		a.defaults = map[string]int{"intermediate_size": 16384, "num_key_value_heads": 8}
		register(a)
	}
}

func llama4(c *config, s *Spec) {
	s.Rope.Interleaved = true
	s.mixture(c, Mixture{
		Experts: 16, ExpertFFN: 8192, ExpertBias: without,
		Route: plan.RouteAttr{Used: 1, Score: plan.SigmoidEach, Before: true},
	})
	s.SharedFFN = s.ExpertFFN
	step := c.integer("interleave_moe_layer_step", 1)
	sparse := func(i int) bool { return (i+1)%step == 0 }
	turned := func(i int) bool { return (i+1)%4 != 0 }
	chunked, chunk := turned, 8192
	s.Temper = &plan.TemperAttr{By: 0.1, Every: 8192, Shift: 1}
	normed := s.Experts != 128 // GGUF has no key for it
	if c.gguf {
		if c.first("attention.sliding_window", 1) == 0 {
			turned, chunk = func(int) bool { return true }, 0
		}
	} else {
		s.epsilon(c, 1e-5)
		s.headDim(c, 128)
		attentionBias(c, s)
		s.RopeBase = 500000
		normed = c.flag("use_qk_norm", true)
		s.Temper = &plan.TemperAttr{By: c.number("attn_scale", 0.1), Every: c.integer("floor_scale", 8192), Shift: 1}
		if n, ok := c.m.Int("attn_temperature_tuning"); ok && n == 0 || !ok && !c.flag("attn_temperature_tuning", true) {
			s.Temper = nil // older files have a number
		}
		nth := c.integer("no_rope_layer_interval", 4)
		turned = func(i int) bool { return (i+1)%nth != 0 }
		if list, _ := c.m.Ints("no_rope_layers"); len(list) > 0 {
			turned = c.marked("no_rope_layers", s, nil)
		}
		if list, ok := c.m.Ints("moe_layers"); ok {
			sparse = func(i int) bool { return slices.Contains(list, int64(i)) }
		}
		chunked, chunk = turned, c.integer("attention_chunk_size", 8192)
		if c.m.Type("attention_chunk_size") == "null" {
			chunk = 0
		}
		if kinds := c.kinds("layer_types", s, "chunked_attention", "full_attention"); kinds != nil {
			chunked = func(i int) bool { return kinds[i] == "chunked_attention" }
		}
	}
	if c.err != nil {
		return
	}
	s.sparse(&s.Mixture, sparse)
	s.Chunks, s.Unturned = make([]int, len(s.Windows)), make([]bool, len(s.Windows))
	for i := range s.Chunks {
		if s.Unturned[i] = !turned(i); chunked(i) {
			s.Chunks[i] = chunk
		}
	}
	if normed {
		s.QKNorm = qkTurned
	}
}

func llama4Layer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	q, k, v := qkv(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden))
	if r := s.ropeOf(w.index); r == nil {
		q = tempered(b, s, w, q)
	} else {
		q, k = b.Rope(q, *r), b.Rope(k, *r)
		if s.QKNorm == qkTurned {
			q, k = b.RMSNorm(q, ones(s.HeadDim), s.Eps), b.RMSNorm(k, ones(s.HeadDim), s.Eps)
		}
	}
	x = b.Add(x, output(b, s, w, attended(b, s, w, q, k, v)))
	return b.Add(x, feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)))
}
