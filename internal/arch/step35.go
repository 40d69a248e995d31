package arch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// Step 3.5 Flash (StepFun, "Step 3.5 Flash", 2026): three of four layers have a window, more query
// heads, and rotary positions of their own; the others turn half of a head. A gate multiplies each
// head. All layers but the first have experts by sigmoid with a bias to choose by, and a shared one;
// the activations of some layers are clamped. The lists of config.json go on with the layers that
// predict further tokens. transformers lacks it; the formulas are those of the file beside the
// checkpoint.
func init() {
	register(architecture{
		title: "Step 3.5", about: "windows with heads and rope bases of their own in three of four layers, a gate for each head; experts by sigmoid with a bias to choose by, and a shared one; the first layers dense",
		gguf: "step35", hub: "Step3p5ForCausalLM", kind: "step3p5", adapt: step35, block: prenorm,
		hubNames: names{
			"attn_gate":      "*layers.#.self_attn.g_proj",
			"ffn_gate_inp":   "*layers.#.moe.gate",
			"exp_probs_b":    "*layers.#.moe.router_bias.",
			"ffn_gate_exps":  "*layers.#.moe.gate_proj",
			"ffn_up_exps":    "*layers.#.moe.up_proj",
			"ffn_down_exps":  "*layers.#.moe.down_proj",
			"ffn_gate_shexp": "*layers.#.share_expert.gate_proj",
			"ffn_up_shexp":   "*layers.#.share_expert.up_proj",
			"ffn_down_shexp": "*layers.#.share_expert.down_proj",
		},
		keys: map[string]string{
			"num_key_value_heads": "num_attention_groups",
			"num_experts":         "moe_num_experts", "num_experts_per_tok": "moe_top_k", "shared_expert_intermediate_size": "share_expert_dim",
			"routed_scaling_factor": "moe_router_scaling_factor", "norm_topk_prob": "norm_expert_weight", "scoring_func": "moe_router_activation",
		},
	})
}

func step35(c *config, s *Spec) {
	s.QKNorm, s.OutGate = qkHeads, sigmoidGate
	s.epsilon(c, 1e-5)
	s.predicting(c)
	m := Mixture{Experts: -1, ChoiceBias: required, Route: plan.RouteAttr{Used: -1, Score: plan.SigmoidEach, Normalize: true}}
	exps, shared := "swiglu_limits", "swiglu_limits_shared"
	if c.gguf {
		s.Partial, s.LocalPart, s.LocalBase = 0.5, 1, cmp.Or(s.LocalBase, 1e4)
		exps, shared, m.ChoiceBias = "swiglu_clamp_exp", "swiglu_clamp_shexp", asFound
	} else {
		s.NormPlus = 1
		s.hubStep35(c)
		if !c.flag("use_moe_router_bias", true) {
			m.ChoiceBias = without
		}
	}
	s.mixture(c, m)
	if s.Route.Score != plan.SigmoidEach {
		c.failf("%s is not sigmoid; supported are experts chosen by sigmoids", c.key("scoring_func"))
	}
	if !c.gguf {
		listed := c.layerList("moe_layers_enum")
		s.sparse(&s.Mixture, func(i int) bool { return listed == nil && i > 0 || slices.Contains(listed, i) })
	}
	s.ExpertLimits, s.Limits = c.limits(exps, s.Layers), c.limits(shared, s.Layers)
}

// hubStep35 reads what config.json says of attention.
func (s *Spec) hubStep35(c *config) {
	const other = "attention_other_setting."
	kinds, _ := c.m.Strings("layer_types")
	if len(kinds) < s.Layers {
		c.failf("layer_types names %d layers of %d", len(kinds), s.Layers)
		return
	}
	for i, k := range kinds {
		if k != "full_attention" && k != "sliding_attention" {
			c.failf("layer_types[%d] is %q, want %q or %q", i, k, "full_attention", "sliding_attention")
		}
	}
	window := c.integer("sliding_window", -1)
	s.windows(func(i int) bool { return kinds[i] == "sliding_attention" }, func() int { return window })
	for _, w := range s.Windows {
		heads, groups := s.Heads, s.KVHeads
		if w > 0 {
			heads, groups = c.integer(other+"num_attention_heads", heads), c.integer(other+"num_attention_groups", groups)
		}
		s.EachHeads, s.EachKVHeads = append(s.EachHeads, heads), append(s.EachKVHeads, groups)
	}
	s.validate(c)
	if n := c.integer(other+"head_dim", s.HeadDim); n != s.HeadDim {
		c.failf("%shead_dim is %d; supported is %d, as in layers without a window", other, n, s.HeadDim)
	}
	s.RopeBase, s.LocalBase = s.byWindow(c, "rope_theta", 10000)
	s.Partial, s.LocalPart = s.byWindow(c, "partial_rotary_factors", 1)
	if types, _ := c.m.Strings("yarn_only_types"); c.hasAny("rope_scaling.") && !slices.Equal(types, []string{"full_attention"}) {
		c.failf("yarn_only_types is %v beside rope_scaling; supported is [full_attention]", types)
	}
	if turned, _ := c.m.Bools("use_rope_layers"); slices.Contains(turned, false) {
		c.failf("use_rope_layers has layers whose heads are not rotated, which are not supported")
	}
	if !c.flag("use_head_wise_attn_gate", true) {
		s.OutGate = ungatedOut
	}
	c.only("zero_centered", true)
	c.only("use_qk_norm", true)
}

// byWindow returns the numbers that the list under key has for layers without a window and for those
// with one, or def.
func (s *Spec) byWindow(c *config, key string, def float64) (full, local float64) {
	if !c.has(key) {
		return def, def
	}
	if f, ok := c.m.Float(key); ok {
		return f, f
	}
	list, _ := c.m.Floats(key)
	if len(list) < s.Layers {
		c.failf("%s has %d numbers for %d layers", key, len(list), s.Layers)
		return def, def
	}
	var numbers [2]float64
	for i, w := range s.Windows {
		to := &numbers[min(w, 1)]
		if !positive(list[i]) || *to > 0 && *to != list[i] {
			c.failf("%s[%d] is %v; supported are positive numbers, one for all layers without a window and one for those with one", key, i, list[i])
		}
		*to = list[i]
	}
	return cmp.Or(numbers[0], def), cmp.Or(numbers[1], def)
}

// limits returns the first n numbers under key, of which null is 0, or nil.
func (c *config) limits(key string, n int) []float64 {
	if !c.has(key) {
		return nil
	}
	value, _ := c.m.Value(c.key(key))
	mixed, ok := value.([]any)
	if !ok {
		list, _ := c.m.Floats(c.key(key))
		for _, f := range list {
			mixed = append(mixed, f)
		}
	}
	all := make([]float64, n)
	if len(mixed) < n {
		c.failf("%s has %d numbers for %d layers", c.key(key), len(mixed), n)
		return nil
	}
	for i, v := range mixed[:n] {
		switch v := v.(type) {
		case nil:
		case int64:
			all[i] = float64(v)
		case float64:
			all[i] = v
		default:
			c.failf("%s[%d] is %v, want a number", c.key(key), i, v)
		}
		if all[i] != 0 && !positive(all[i]) {
			c.failf("%s[%d] is %v, want a positive number, or 0 for none", c.key(key), i, all[i])
		}
	}
	return all
}

// layerList returns the numbers of layers in a text, between commas, or nil.
func (c *config) layerList(key string) []int {
	if !c.has(key) {
		return nil
	}
	var all []int
	for part := range strings.SplitSeq(c.text(key, ""), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			c.failf("%s: %q is not the number of a layer", key, part)
			return nil
		}
		all = append(all, n)
	}
	return all
}
