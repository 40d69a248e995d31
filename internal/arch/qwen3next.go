package arch

import (
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// Qwen3-Next (Qwen team, "Qwen3-Next: Towards Ultimate Training & Inference Efficiency", 2025):
// three of four layers have a gated delta net, the others attention with a gate of its output. A
// quarter of a head is rotated, norms are stored minus one, and experts are as in Qwen2-MoE, with
// normalized weights.
//
// Qwen3.5 and Qwen3.6 (Qwen team, 2026) have separate projections, and a feed-forward layer in
// models without experts. Their checkpoints have images' towers, which are omitted. GGUF orders their value heads so that those of one key are far apart.
func init() {
	next := architecture{
		title: "Qwen3-Next", about: "gated delta nets in three of four layers, attention with a gate, experts and a gated shared one",
		gguf: "qwen3next", hub: "Qwen3NextForCausalLM", kind: "qwen3_next", adapt: qwen3next, block: hybrid,
		nextn: &nextn{base: "mtp.", like: lastAttention, names: names{
			"nextn.enorm": "mtp.pre_fc_norm_embedding", "nextn.hnorm": "mtp.pre_fc_norm_hidden", "nextn.eh_proj": "mtp.fc", "nextn.shared_head_norm": "mtp.norm",
		}},
		hubNames: deltaNames, ggufNames: deltaGGUF,
		defaults: map[string]int{
			"head_dim": 256, "num_key_value_heads": 2, "intermediate_size": 5632, "linear_conv_kernel_dim": 4,
			"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
		},
	}
	register(next)
	dense := next
	dense.title, dense.about = "Qwen 3.5, 3.6", "Qwen3-Next without experts"
	dense.gguf, dense.hub, dense.kind, dense.adapt = "qwen35", "Qwen3_5ForCausalLM", "qwen3_5_text", qwen35
	dense.defaults = map[string]int{
		"head_dim": 256, "num_key_value_heads": 4, "linear_conv_kernel_dim": 4,
		"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
	}
	sparse := next
	sparse.title, sparse.about = "Qwen 3.5 MoE, 3.6 MoE", "Qwen3-Next with other projections"
	sparse.gguf, sparse.hub, sparse.kind, sparse.adapt = "qwen35moe", "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", qwen35moe
	for _, a := range []architecture{dense, sparse} {
		register(a)
		a.title += " with towers"
		a.about = "the model of text, without the towers for images"
		a.hub, a.kind = strings.Replace(a.hub, "ForCausalLM", "ForConditionalGeneration", 1), strings.TrimSuffix(a.kind, "_text")
		a.gguf = ""
		register(a)
	}
}

func qwen3next(c *config, s *Spec) {
	s.hybridAttention(c)
	s.deltaNet(c, plan.DeltaAttr{})
	s.gatedExperts(c, 512, 10)
}

func qwen35(c *config, s *Spec) {
	s.hybridAttention(c)
	s.deltaNet(c, plan.DeltaAttr{Tiled: true})
}

func qwen35moe(c *config, s *Spec) {
	s.hybridAttention(c)
	s.deltaNet(c, plan.DeltaAttr{Tiled: true})
	s.gatedExperts(c, 256, 8)
}

// hybridAttention reads what is special in the layers with attention.
func (s *Spec) hybridAttention(c *config) {
	s.Partial, s.QKNorm, s.OutGate = 0.25, qkHeads, queryGate
	attentionBias(c, s)
	s.predicting(c)
	if !c.gguf {
		s.NormPlus = 1
		c.only("attn_output_gate", true)
	}
}

// lastAttention returns the last layer with attention.
func lastAttention(s *Spec) int {
	for i := s.Layers - 1; i > 0; i-- {
		if !s.Recurrent[i] {
			return i
		}
	}
	return 0
}

// gatedExperts reads the numbers of experts beside a shared one with a gate.
func (s *Spec) gatedExperts(c *config, experts, used int) {
	if n, ok := c.m.Int("num_experts"); ok && n == 0 && !c.gguf {
		return // feed-forward layers only
	}
	s.mixture(c, Mixture{
		Experts: experts, ExpertFFN: 512, SharedFFN: 512, SharedGate: required,
		Route: plan.RouteAttr{Used: used, Normalize: true},
	})
}
