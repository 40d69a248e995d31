package arch

import "github.com/realizar/realizar/internal/plan"

// Command R7B (Cohere, "Command A", 2025): Command R with windows in three of four layers. The
// fourth layer attends to the whole past and has no positions.
func init() {
	register(architecture{
		title: "Command R7B, Command A", about: "Command R with windows in three of four layers, and no positions in the fourth",
		gguf: "cohere2", hub: "Cohere2ForCausalLM", kind: "cohere2", keys: cohereKeys, norm: plan.LayerNorm, adapt: cohere2, block: parallel,
	})
}

func cohere2(c *config, s *Spec) {
	cohereSpec(c, s)
	s.alternate(c, 4, 0)
	s.turnWindows()
}
