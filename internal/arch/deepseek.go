package arch

import (
	"maps"

	"github.com/realizar/realizar/internal/plan"
)

// DeepSeek-V2 and V3 (DeepSeek-AI, "DeepSeek-V2", 2024; "DeepSeek-V3 Technical Report", 2024):
// latent attention, and experts and shared experts in all but the first layers. V2 chooses experts
// by softmax, in the groups with the best expert; V3 by sigmoids and a bias, in the groups whose two
// best are best. GGUF has one name for both, and for other models of this kind, which may have no
// experts.
func init() {
	register(architecture{
		title: "DeepSeek-V2", about: "latent attention; experts in groups, and shared ones; the first layers dense",
		hub: "DeepseekV2ForCausalLM", kind: "deepseek_v2", adapt: deepseekV2, block: prenorm,
		hubNames: latentNames, defaults: with(latentDefaults, map[string]int{"n_shared_experts": 2}),
	})
	register(architecture{
		title: "DeepSeek-V3, R1, V3.1, Kimi K2", about: "latent attention; experts by sigmoid with a bias to choose by, in groups, and shared ones; the first layers dense",
		gguf: "deepseek2", hub: "DeepseekV3ForCausalLM", kind: "deepseek_v3", adapt: deepseekV3, block: prenorm, nextn: &nextn{},
		hubNames: latentNames, defaults: with(latentDefaults, map[string]int{
			"first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "n_shared_experts": 1,
		}),
	})
	register(architecture{
		title: "GLM-4.7-Flash", about: "DeepSeek-V3's layers",
		hub: "Glm4MoeLiteForCausalLM", kind: "glm4_moe_lite", adapt: glm4moeLite, block: prenorm, nextn: &nextn{},
		hubNames: latentNames, defaults: map[string]int{
			"kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "n_shared_experts": 1,
		},
	})
	register(architecture{
		title: "Youtu-LLM", about: "latent attention",
		hub: "YoutuForCausalLM", kind: "youtu", adapt: youtu, block: prenorm,
		hubNames: latentNames, defaults: latentDefaults,
	})
}

func deepseekV2(c *config, s *Spec) {
	s.latent(c, 1536)
	s.yarnScores(c)
	s.Rope.Interleaved = true
	s.mixture(c, Mixture{Experts: 64, ExpertFFN: 1407, Route: plan.RouteAttr{Used: -1, Score: plan.SoftmaxAll, GroupTop: 1}})
	s.Route.Normalize = false // as in transformers, whatever norm_topk_prob says
	if c.m.Type("n_shared_experts") == "null" {
		s.SharedFFN = 0
	}
	switch method := c.text("topk_method", "greedy"); method {
	case "greedy":
		s.Route.Groups, s.Route.GroupsUsed = 0, 0
	case "group_limited_greedy":
	default:
		c.failf("topk_method is %q; supported are %q and %q", method, "greedy", "group_limited_greedy")
	}
	mlpBias(c, s)
	s.everyLayerSparse(c)
}

func deepseekV3(c *config, s *Spec) {
	s.latent(c, 1536)
	s.yarnScores(c)
	m := Mixture{
		Experts: 256, ExpertFFN: 2048,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: !c.gguf, Scale: 2.5, GroupTop: 2},
	}
	if !c.gguf {
		m.ChoiceBias = required
		s.Rope.Interleaved = c.flag("rope_interleave", true)
		s.mixture(c, m)
		s.Predicting = c.first("num_nextn_predict_layers", 0)
		s.everyLayerSparse(c)
		return
	}
	s.Rope.Interleaved = true
	s.Predicting = min(c.first("nextn_predict_layers", 0), max(0, s.Layers-1))
	s.Layers -= s.Predicting
	if c.first("expert_count", 0) == 0 {
		return
	}
	m.Route.Scale = 1
	m.Route.Score = plan.SoftmaxAll // of files without the key
	s.mixture(c, m)
	if s.Route.Score == plan.SoftmaxAll { // V2
		s.Route.GroupTop = min(s.Route.GroupTop, 1)
	}
}

func glm4moeLite(c *config, s *Spec) {
	s.epsilon(c, 1e-5)
	s.latent(c, 768)
	s.yarnScores(c)
	s.Rope.Interleaved = c.flag("rope_interleave", true)
	s.mixture(c, Mixture{
		Experts: 64, ExpertFFN: 1536, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 4, Score: plan.SigmoidEach, Normalize: true, Scale: 1.8, GroupTop: 2},
	})
	s.Predicting = c.first("num_nextn_predict_layers", 0)
	sparse := func(i int) bool { return i > 0 }
	if kinds := c.kinds("mlp_layer_types", s, "dense", "sparse"); kinds != nil {
		sparse = func(i int) bool { return kinds[i] == "sparse" }
	}
	s.sparse(&s.Mixture, sparse)
}

func youtu(c *config, s *Spec) {
	s.latent(c, 1536)
	s.yarnScores(c)
	s.Rope.Interleaved = c.flag("rope_interleave", true)
	mlpBias(c, s)
}

// everyLayerSparse refuses mixtures in some layers only after the first dense ones.
func (s *Spec) everyLayerSparse(c *config) {
	if n := c.integer("moe_layer_freq", 1); n != 1 {
		c.failf("moe_layer_freq is %d; supported is 1", n)
	}
}

// latentNames are the names in checkpoints with latent attention.
var latentNames = names{
	"attn_q_a":       "*layers.#.self_attn.q_a_proj",
	"attn_q_a_norm":  "*layers.#.self_attn.q_a_layernorm",
	"attn_q_b":       "*layers.#.self_attn.q_b_proj",
	"attn_kv_a_mqa":  "*layers.#.self_attn.kv_a_proj_with_mqa",
	"attn_kv_a_norm": "*layers.#.self_attn.kv_a_layernorm",
	"attn_kv_b":      "*layers.#.self_attn.kv_b_proj",
}

// with returns a copy of base with more.
func with[V any, M ~map[string]V](base, more M) M {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}
