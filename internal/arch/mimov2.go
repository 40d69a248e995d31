package arch

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// MiMo-V2-Flash (Xiaomi, "MiMo-V2-Flash Technical Report", 2025): five of six layers have a window,
// sinks, twice as many key/value heads and a rope base of their own. Values are narrower than keys
// and multiplied by a constant. All layers but the first have experts, chosen as in DeepSeek-V3.
// MiMo-V2.5 (2026) has the same layers, with queries, keys and values in one weight.
func init() {
	for _, a := range []architecture{
		{title: "MiMo-V2-Flash", gguf: "mimo2", hub: "MiMoV2FlashForCausalLM", kind: "mimo_v2_flash"},
		{title: "MiMo-V2.5, V2.6", hub: "MiMoV2ForCausalLM", kind: "mimo_v2"},
	} {
		a.about = "values narrower than keys; windows with sinks in five of six layers, experts by sigmoid with a bias to choose by"
		a.adapt, a.block = mimoV2, mimoV2Layer
		a.nextn = &nextn{base: "model.mtp.", like: firstWindow, dense: true, names: names{
			"ffn_norm": "*layers.#.pre_mlp_layernorm", "nextn.shared_head_norm": "*layers.#.final_layernorm",
		}}
		a.hubNames = names{"attn_sinks": "*layers.#.self_attn.attention_sink_bias."}
		a.layouts = map[string]layout{"attn_qkv": sharded}
		a.keys = map[string]string{"rms_norm_eps": "layernorm_epsilon"}
		a.defaults = map[string]int{"sliding_window": 128}
		register(a)
	}
}

func mimoV2(c *config, s *Spec) {
	s.mixture(c, Mixture{
		Experts: 256, ExpertFFN: 2048, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	})
	if c.gguf {
		s.predicting(c)
		s.SinksFound = true
		s.ValueScale = c.number("attention.value_scale", 1)
		return
	}
	s.headDim(c, 192)
	attentionBias(c, s)
	s.OutBias = without
	s.ValueDim = c.integer("v_head_dim", 128)
	if s.ValueScale = c.number("attention_value_scale", 0.707); c.m.Type("attention_value_scale") == "null" {
		s.ValueScale = 1
	}
	s.Partial, s.RopeBase, s.LocalBase = 0.334, 5e6, c.number("swa_rope_theta", 1e4)
	s.slidingLayers(c, c.marked("hybrid_layer_pattern", s, func(i int) bool { return i > 0 && (i+1)%6 != 0 }))
	sparse := c.marked("moe_layer_freq", s, func(i int) bool { return i > 0 })
	if kinds := c.kinds("mlp_layer_types", s, "dense", "sparse"); kinds != nil {
		sparse = func(i int) bool { return kinds[i] == "sparse" }
	}
	s.sparse(&s.Mixture, sparse)

	local, full := c.flag("add_swa_attention_sink_bias", true), c.flag("add_full_attention_sink_bias", false)
	shared := c.integer("swa_num_key_value_heads", 2*s.KVHeads)
	for _, w := range s.Windows {
		heads, sinks := s.KVHeads, full
		if w > 0 {
			heads, sinks = shared, local
		}
		s.EachKVHeads, s.EachSinks = append(s.EachKVHeads, heads), append(s.EachSinks, sinks)
	}
	for key, n := range map[string]int{"swa_num_attention_heads": s.Heads, "swa_head_dim": s.HeadDim, "swa_v_head_dim": s.ValueDim} {
		if own := c.integer(key, n); own != n {
			c.failf("%s is %d; supported is %d, as in layers without a window", key, own, n)
		}
	}
}

func mimoV2Layer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := norm(b, s, w, x, "attn_norm", s.Hidden)
	q, k, v := qkv(b, s, w, h)
	x = b.Add(x, output(b, s, w, attended(b, s, w, heads(b, s, w, q, "attn_q_norm"), heads(b, s, w, k, "attn_k_norm"), b.Scale(v, s.ValueScale))))
	h = norm(b, s, w, x, "ffn_norm", s.Hidden)
	if !w.hub && !w.has("ffn_gate_inp") { // GGUF has no key for it
		return b.Add(x, glu(b, s, w, h, "", s.FFN))
	}
	return b.Add(x, feedForward(b, s, w, h))
}

// firstWindow returns the first layer with a window.
func firstWindow(s *Spec) int {
	return max(0, slices.IndexFunc(s.Windows, func(w int) bool { return w > 0 }))
}

// marked returns a function that reports which layers the list under key marks by 1, or def if the
// file has no such list.
func (c *config) marked(key string, s *Spec, def func(layer int) bool) func(layer int) bool {
	list, ok := c.m.Ints(key)
	switch {
	case !c.has(key):
		return def
	case !ok || len(list) < s.Layers || slices.ContainsFunc(list, func(n int64) bool { return n != 0 && n != 1 }):
		c.failf("%s is %v, want 0 or 1 for each of %d layers", key, list, s.Layers)
		return def
	}
	return func(i int) bool { return list[i] == 1 }
}
