package arch

import "github.com/realizar/realizar/internal/plan"

// Command A+ (Cohere, model card, 2026): Command A with experts in all but the first layers, whose
// result is averaged with that of shared ones. The layers that predict further tokens are omitted.
func init() {
	register(architecture{
		title: "Command A+", about: "Command A with experts by sigmoid or by softmax over those chosen, averaged with shared ones; the first layers may be dense",
		gguf: "cohere2moe", hub: "Cohere2MoeForCausalLM", kind: "cohere2_moe", norm: plan.LayerNorm, adapt: cohere2MoE, block: parallel,
		keys: map[string]string{
			"rms_norm_eps": "layer_norm_eps", "n_shared_experts": "num_shared_experts", "moe_intermediate_size": "intermediate_size",
		},
	})
}

func cohere2MoE(c *config, s *Spec) {
	s.predicting(c)
	cohereSpec(c, s)
	m := Mixture{Experts: 8, SharedMean: true, Route: plan.RouteAttr{Used: 2, Score: plan.SigmoidEach, Normalize: true}}
	if c.gguf {
		if eps := c.optional("attention.layer_norm_rms_epsilon"); eps > 0 {
			s.Norm, s.Eps = plan.RMSNorm, eps
		}
		s.alternate(c, 4, 0)
	} else {
		s.headDim(c, 128)
		if t := c.m.Type("rms_norm_eps"); t != "" && t != "null" {
			eps, _ := c.m.Float("rms_norm_eps")
			if s.Norm, s.Eps = plan.RMSNorm, eps; !positive(eps) {
				c.failf("rms_norm_eps is %v, want a positive number", eps)
			}
		}
		m.choose(c)
	}
	s.mixture(c, m)
	dense := func(i int) bool { return s.Sparse != nil && !s.Sparse[i] }
	turned := c.gguf
	if !c.gguf {
		prefix := c.integer("prefix_dense_sliding_window_pattern", 1)
		first := c.first("first_k_dense_replace", 0)
		s.slidingLayers(c, func(i int) bool {
			if i < first {
				return (i+1)%prefix != 0
			}
			return (i-first+1)%c.integer("sliding_window_pattern", 4) != 0
		})
		turned = prefix == 1
		s.FFN = c.integer("prefix_dense_intermediate_size", s.FFN)
	}
	s.turnWindows()
	for i := range s.Unturned {
		if turned && dense(i) {
			s.Unturned[i] = false
		}
	}
}

// choose reads how Command A+ chooses experts and what it does with the shared ones.
func (m *Mixture) choose(c *config) {
	switch name := c.text("expert_selection_fn", "softmax"); name {
	case "softmax":
		m.Route.Score = plan.SoftmaxChosen
	case "sigmoid":
	default:
		c.failf("expert_selection_fn is %q; the nearest known are %s", name, nearestOf(name, []string{"softmax", "sigmoid"}))
	}
	switch name := c.text("shared_expert_combination_strategy", "average"); name {
	case "average":
	case "sum":
		m.SharedMean = false
	default:
		c.failf("shared_expert_combination_strategy is %q; the nearest known are %s", name, nearestOf(name, []string{"average", "sum"}))
	}
}
