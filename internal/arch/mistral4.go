package arch

import "github.com/realizar/realizar/internal/plan"

// Mistral Small 4 (Mistral AI, 2026, the model card of mistralai/Mistral-Small-4-119B-2603): latent
// attention with queries that grow with the position, and experts by softmax in all layers but the
// first ones that the configuration names, with shared ones.
func init() {
	register(architecture{
		title: "Mistral Small 4", about: "latent attention, queries that grow with the position; experts in groups, and shared ones",
		hub: "Mistral4ForCausalLM", kind: "mistral4", adapt: mistral4, block: prenorm,
		hubNames: latentNames, defaults: map[string]int{
			"kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_shared_experts": 1,
		},
	})
}

func mistral4(c *config, s *Spec) {
	l := s.latent(c, 1024)
	s.Rope.Interleaved = c.flag("rope_interleave", true)
	s.HeadDim = l.Plain + l.Turned // partial_rotary_factor is of the whole head
	s.Partial = float64(l.Turned) / float64(max(1, s.HeadDim))
	at := c.ropeKeys()
	if !c.hasAny(at) {
		c.failf("both rope_parameters and rope_scaling are missing")
	}
	s.growing(c, at+"llama_4_scaling_beta", at+"original_max_position_embeddings", -1)
	s.mixture(c, Mixture{
		Experts: 128, ExpertFFN: 2048,
		Route: plan.RouteAttr{Used: 4, Score: plan.SoftmaxAll, Normalize: true, GroupTop: 2},
	})
}
