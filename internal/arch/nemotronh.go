package arch

import (
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// Nemotron-H (NVIDIA, "Nemotron-H: A Family of Accurate and Efficient Hybrid Mamba-Transformer
// Models", 2025) and Nemotron 3 (NVIDIA, "NVIDIA Nemotron 3", 2025): each layer is one of Mamba-2's
// states, attention without positions, a feed-forward layer or a mixture, all with squared ReLU and
// no gate. Experts may work in fewer columns, between two projections that all share.
func init() {
	a := architecture{
		title: "Nemotron-H", about: "each layer is states, attention without positions, or a feed-forward layer; squared ReLU without a gate",
		gguf: "nemotron_h", hub: "NemotronHForCausalLM", kind: "nemotron_h", adapt: nemotronH, block: nemotronHBlock, zeros: true,
		base: "backbone.", hubNames: dualNames("*layers.#.mixer.", names{
			"token_embd":      "*embeddings",
			"output_norm":     "*norm_f",
			"attn_norm":       "*layers.#.norm",
			"attn_q":          "*layers.#.mixer.q_proj",
			"attn_k":          "*layers.#.mixer.k_proj",
			"attn_v":          "*layers.#.mixer.v_proj",
			"attn_output":     "*layers.#.mixer.o_proj",
			"ffn_up":          "*layers.#.mixer.up_proj",
			"ffn_down":        "*layers.#.mixer.down_proj",
			"ffn_gate_inp":    "*layers.#.mixer.gate",
			"exp_probs_b":     "*layers.#.mixer.gate.e_score_correction_bias.",
			"ffn_latent_down": "*layers.#.mixer.fc1_latent_proj",
			"ffn_latent_up":   "*layers.#.mixer.fc2_latent_proj",
			"ffn_up_exp":      "*layers.#.mixer.experts.@.up_proj",
			"ffn_down_exp":    "*layers.#.mixer.experts.@.down_proj",
			"ffn_up_exps":     "*layers.#.mixer.experts.up_proj.",
			"ffn_down_exps":   "*layers.#.mixer.experts.down_proj.",
			"ffn_up_shexp":    "*layers.#.mixer.shared_experts.up_proj",
			"ffn_down_shexp":  "*layers.#.mixer.shared_experts.down_proj",
		}),
		ggufNames: stateGGUF, layouts: stateLayouts,
		keys: map[string]string{"rms_norm_eps": "layer_norm_epsilon", "hidden_act": "mlp_hidden_act", "head_dim": "attention_head_dim"},
		defaults: map[string]int{
			"num_hidden_layers":   1, // the layers' kinds tell
			"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 4096, "intermediate_size": 21504,
		},
	}
	register(a)
	a.title, a.about = "Nemotron 3", "Nemotron-H with experts by sigmoid in place of feed-forward layers, which may work in fewer columns"
	a.gguf, a.hub, a.kind = "nemotron_h_moe", "", ""
	register(a)
}

// The kinds of layers, by their letters in NVIDIA's patterns.
const (
	statesLayer    = 'M'
	attentionLayer = '*'
	denseLayer     = '-'
	mixtureLayer   = 'E'
)

// nemotronKinds are the kinds of layers by their names in config.json.
var nemotronKinds = map[string]byte{
	"mamba": statesLayer, "linear_attention": statesLayer, "attention": attentionLayer, "full_attention": attentionLayer, "mlp": denseLayer, "moe": mixtureLayer,
}

func nemotronH(c *config, s *Spec) {
	s.Ungated = true
	m := Mixture{
		ChoiceBias: required, ExpertFFN: 7688, SharedFFN: 7688,
		Route: plan.RouteAttr{Used: 2, Score: plan.SigmoidEach, Normalize: true, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	}
	if c.gguf {
		s.Act = plan.ReLUSquared
		s.dualGGUF(c)
		s.positionless()
		mixture := byte(denseLayer)
		if c.first("expert_count", 0) > 0 {
			m.ExpertGLU.Act = plan.ReLU
			s.mixture(c, m)
			mixture = mixtureLayer
		}
		for i := range s.Layers {
			switch l := s.at(i); {
			case l.KVHeads > 0:
				s.Kinds += string(attentionLayer)
			case l.FFN > 0:
				s.Kinds += string(mixture)
			default:
				s.Kinds += string(statesLayer)
			}
		}
		s.LatentFFN = c.first("moe_latent_size", 0)
		return
	}
	s.epsilon(c, 1e-5)
	s.Act = c.activation("hidden_act", "relu2")
	attentionBias(c, s)
	mlpBias(c, s)
	s.nemotronPattern(c)
	s.Windows = make([]int, s.Layers)
	s.positionless()
	if c.has("sliding_window") {
		c.failf("sliding_window is set; Nemotron-H's attention is supported without a window")
	}
	s.States, s.Taps = c.integer("ssm_state_size", 128), c.first("conv_kernel", c.integer("mamba_d_conv", 4))
	s.StateHeads, s.StateGroups = c.integer("mamba_num_heads", 128), c.first("n_groups", c.integer("mamba_n_groups", 8))
	s.Inner = s.StateHeads * c.integer("mamba_head_dim", 64)
	s.NormGroups, s.GateEps = s.StateGroups, s.Eps
	s.ConvBias = c.biasIf("use_conv_bias", c.flag("mamba_conv_bias", true))
	s.projected(c, "use_bias", false)
	s.StepMin = c.number("time_step_min", c.number("mamba_dt_min", 0.001)) // as transformers, which leaves out time_step_limit
	if act := c.text("mamba_hidden_act", "silu"); act != "silu" {
		c.failf("mamba_hidden_act is %q; supported is %q", act, "silu")
	}
	if !strings.ContainsRune(s.Kinds, mixtureLayer) {
		return
	}
	if s.Act != plan.ReLUSquared {
		c.failf("mlp_hidden_act is %v; experts are supported with %v", s.Act, plan.ReLUSquared)
	}
	m.ExpertGLU.Act = plan.ReLU
	m.Experts = 8
	s.mixture(c, m)
	s.SharedFFN = c.integer("moe_shared_expert_intermediate_size", m.SharedFFN)
	s.LatentFFN = c.first("moe_latent_size", 0)
}

// nemotronPattern reads the kinds of layers, from a list or from a text with a letter for each.
func (s *Spec) nemotronPattern(c *config) {
	kinds, ok := c.m.Strings("layers_block_type")
	if !ok {
		kinds, ok = c.m.Strings("layer_types")
	}
	s.Kinds = c.text("hybrid_override_pattern", "")
	if ok {
		s.Kinds = ""
		for i, k := range kinds {
			letter := nemotronKinds[k]
			if letter == 0 {
				c.failf("layers_block_type[%d] is %q; known are linear_attention, full_attention, mlp and moe", i, k)
				return
			}
			s.Kinds += string(letter)
		}
	}
	for i, k := range s.Kinds {
		if k != statesLayer && k != attentionLayer && k != denseLayer && k != mixtureLayer {
			c.failf("hybrid_override_pattern has %q at %d; known are M, *, - and E", k, i)
		}
	}
	if s.Layers = len(s.Kinds); s.Layers < 1 || s.Layers > maxLayers {
		c.failf("layers_block_type has %d layers, want 1 to %d", s.Layers, maxLayers)
		s.Layers = 0
	}
}

// nemotronHBlock is a layer of one kind.
func nemotronHBlock(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := norm(b, s, w, x, "attn_norm", s.Hidden)
	switch s.Kinds[w.index] {
	case statesLayer:
		h = dual(b, s, w, h)
	case attentionLayer:
		h = attention(b, s, w, h)
	case denseLayer:
		h = ungated(b, s, w, h)
	default:
		h = nemotronMixture(b, s, w, h)
	}
	return b.Add(x, h)
}

// nemotronMixture is a mixture of experts without gates, and a shared one. Squared ReLU is
// ReLU(u)*u, so that a gate with the same weights as up computes it.
func nemotronMixture(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	logits := linear(b, w, x, "ffn_gate_inp", s.Experts, without)
	in, width := x, s.Hidden
	if s.LatentFFN > 0 {
		width = s.LatentFFN
		in = linear(b, w, x, "ffn_latent_down", width, s.MLPBias)
	}
	up := w.matrices("ffn_up", s.Experts, s.ExpertFFN, width)
	y := b.Experts(in, logits, w.bias("exp_probs_b", s.ChoiceBias), plan.ExpertsAttr{
		Route: s.Route, GLU: s.ExpertGLU, Gate: up, Up: up, Down: w.matrices("ffn_down", s.Experts, width, s.ExpertFFN),
	})
	if s.LatentFFN > 0 {
		y = linear(b, w, y, "ffn_latent_up", s.Hidden, s.MLPBias)
	}
	shared := b.Activate(linear(b, w, x, "ffn_up_shexp", s.SharedFFN, s.MLPBias), s.Act)
	return b.Add(y, linear(b, w, shared, "ffn_down_shexp", s.Hidden, s.MLPBias))
}
