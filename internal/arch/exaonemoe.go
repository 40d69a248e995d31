package arch

import (
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// K-EXAONE (LG AI Research, "K-EXAONE Technical Report", 2026): EXAONE 4.0's attention with the
// norms before each part, and experts chosen as in DeepSeek-V3, with shared ones, in all but the
// first layers. The layers that predict further tokens are omitted. The first checkpoints have
// another class name.
func init() {
	a := architecture{
		title: "K-EXAONE", about: "EXAONE 4.0's attention; experts by sigmoid with a bias to choose by, in groups, and shared ones; the first layers dense",
		gguf: "exaone-moe", hub: "ExaoneMoeForCausalLM", kind: "exaone_moe", adapt: exaoneMoE, block: prenorm,
		hubNames: names{"exp_probs_b": "*layers.#.mlp.e_score_correction_bias."},
		keys:     map[string]string{"n_shared_experts": "num_shared_experts"},
		defaults: map[string]int{"n_shared_experts": 1, "first_k_dense_replace": 1},
	}
	register(a)
	a.gguf, a.hub, a.kind, a.title = "", "ExaoneMoEForCausalLM", "", "K-EXAONE, the first checkpoints"
	register(a)
}

func exaoneMoE(c *config, s *Spec) {
	s.QKNorm = qkHeads
	s.epsilon(c, 1e-5)
	s.predicting(c)
	if pattern, ok := c.m.String("sliding_window_pattern"); ok && !c.gguf {
		s.slidingLayers(c, letters(c, s, pattern))
	} else {
		s.alternate(c, 4, 0)
	}
	if c.hasWindow() {
		s.turnWindows()
	}
	s.mixture(c, Mixture{
		Experts: 64, ExpertFFN: 1024, ChoiceBias: required,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Scale: 2.5, Groups: 1, GroupsUsed: 1, GroupTop: 2},
	})
}

// letters reads a pattern of layers that repeats: L for a window, G for none. The last layer has
// none.
func letters(c *config, s *Spec, pattern string) func(layer int) bool {
	if pattern == "" || strings.Trim(pattern, "LG") != "" {
		c.failf("sliding_window_pattern is %q, want letters L and G", pattern)
		return func(int) bool { return false }
	}
	return func(i int) bool { return i < s.Layers-1 && pattern[i%len(pattern)] == 'L' }
}
