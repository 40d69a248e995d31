package arch

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// Kimi Linear (Kimi team, "Kimi Linear: An Expressive, Efficient Attention Architecture", 2025):
// three of four layers have delta nets whose gates are by channel, the fourth latent attention
// without positions; experts are as in DeepSeek-V3. In GGUF a layer with a delta net has no
// key/value heads.
func init() {
	register(architecture{
		title: "Kimi Linear", about: "delta nets with gates by channel in three of four layers, latent attention without positions in the fourth; experts by sigmoid with a bias to choose by",
		gguf: "kimi-linear", hub: "KimiLinearForCausalLM", kind: "kimi_linear", adapt: kimiLinear, block: kimiLayer, zeros: true,
		hubNames: with(latentNames, names{
			"delta_q":      "*layers.#.self_attn.q_proj",
			"delta_k":      "*layers.#.self_attn.k_proj",
			"delta_v":      "*layers.#.self_attn.v_proj",
			"attn_gate":    "*layers.#.self_attn.g_proj",
			"ssm_g_a":      "*layers.#.self_attn.g_a_proj",
			"ssm_g_b":      "*layers.#.self_attn.g_b_proj",
			"ssm_f_a":      "*layers.#.self_attn.f_a_proj",
			"ssm_f_b":      "*layers.#.self_attn.f_b_proj",
			"ssm_beta":     "*layers.#.self_attn.b_proj",
			"ssm_conv1d_q": "*layers.#.self_attn.q_conv1d",
			"ssm_conv1d_k": "*layers.#.self_attn.k_conv1d",
			"ssm_conv1d_v": "*layers.#.self_attn.v_conv1d",
			"ssm_a":        "*layers.#.self_attn.A_log.",
			"ssm_dt":       "*layers.#.self_attn.dt_bias.",
			"ssm_norm":     "*layers.#.self_attn.o_norm",
			"ssm_out":      "*layers.#.self_attn.o_proj",

			"ffn_gate_moe":   "*layers.#.block_sparse_moe.gate_proj",
			"ffn_up_moe":     "*layers.#.block_sparse_moe.up_proj",
			"ffn_down_moe":   "*layers.#.block_sparse_moe.down_proj",
			"ffn_gate_inp":   "*layers.#.block_sparse_moe.gate",
			"exp_probs_b":    "*layers.#.block_sparse_moe.gate.e_score_correction_bias.",
			"ffn_gate_exp":   "*layers.#.block_sparse_moe.experts.@.w1",
			"ffn_up_exp":     "*layers.#.block_sparse_moe.experts.@.w3",
			"ffn_down_exp":   "*layers.#.block_sparse_moe.experts.@.w2",
			"ffn_gate_shexp": "*layers.#.block_sparse_moe.shared_experts.gate_proj",
			"ffn_up_shexp":   "*layers.#.block_sparse_moe.shared_experts.up_proj",
			"ffn_down_shexp": "*layers.#.block_sparse_moe.shared_experts.down_proj",
		}),
		ggufNames: names{
			"delta_q": "blk.#.attn_q", "delta_k": "blk.#.attn_k", "delta_v": "blk.#.attn_v", "ssm_a": "blk.#.ssm_a.", "ssm_out": "blk.#.attn_output",
		},
		keys: map[string]string{
			"max_position_embeddings": "model_max_length", "norm_topk_prob": "moe_renormalize", "n_group": "num_expert_group", "n_shared_experts": "num_shared_experts",
			"scoring_func": "moe_router_activation_func",
		},
		defaults: with(latentDefaults, map[string]int{"first_k_dense_replace": 1}),
	})
}

func kimiLinear(c *config, s *Spec) {
	s.epsilon(c, 1e-5)
	s.predicting(c)
	a := &s.Delta
	a.ByChannel, a.Beta, s.DeltaAct = true, 1, plan.Sigmoid
	if c.gguf {
		a.Heads, a.KeyDim, s.DeltaTaps = s.Heads, c.integer("kda.head_dim", -1), c.integer("ssm.conv_kernel", -1)
		s.headless()
	} else {
		s.hubKimi(c)
	}
	a.KeyHeads, a.ValueDim = a.Heads, a.KeyDim
	s.latent(c, 0)
	s.positionless()
	s.mixture(c, Mixture{
		Experts: 256, ExpertFFN: 1024, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Scale: 2.446, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	})
}

// hubKimi reads what config.json says of delta nets, and which layers have them.
func (s *Spec) hubKimi(c *config) {
	const own = "linear_attn_config."
	a := &s.Delta
	a.Heads = c.integer(own+"num_heads", c.integer("linear_num_heads", 32))
	a.KeyDim = c.integer(own+"head_dim", c.integer("linear_head_dim", 128))
	s.DeltaTaps = c.integer(own+"short_conv_kernel_size", c.integer("linear_conv_kernel_dim", 4))
	if floor, ok := c.m.Float(own + "gate_lower_bound"); ok {
		if a.Floor = floor; !(floor < 0 && floor >= -math.MaxFloat32) {
			c.failf("%sgate_lower_bound is %v, want a number below 0", own, floor)
		}
	}
	if n, _ := c.m.Int("attn_res_block_size"); n > 0 {
		c.failf("attn_res_block_size is %d; attention over blocks of layers is not supported", n)
	}
	s.everyLayerSparse(c)
	c.only("mla_use_nope", true)
	c.only("mla_use_output_gate", false)
	s.recurrent(c, 4)
	full, ok := c.m.Ints(own + "full_attn_layers")
	delta, both := c.m.Ints(own + "kda_layers")
	if !ok || !both || c.has("layer_types") {
		return
	}
	for i := range s.Recurrent { // the lists count layers from 1
		s.Recurrent[i] = slices.Contains(delta, int64(i+1))
		if s.Recurrent[i] == slices.Contains(full, int64(i+1)) {
			c.failf("layer %d must be in one of %sfull_attn_layers and %skda_layers", i+1, own, own)
		}
	}
}

// kimiLayer is a layer with a delta net or latent attention. Some files name a feed-forward layer
// without experts as if it had them.
func kimiLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	x = b.Add(x, mixed(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)))
	h := norm(b, s, w, x, "ffn_norm", s.Hidden)
	if s.Experts == 0 && w.has("ffn_gate_moe") {
		return b.Add(x, glu(b, s, w, h, "_moe", s.FFN))
	}
	return b.Add(x, feedForward(b, s, w, h))
}
