package arch

import "github.com/realizar/realizar/internal/plan"

// unlimited is the context of models without attention, in tokens: their states have no positions.
// It is the number that llama.cpp's converter writes.
const unlimited = 1 << 20

// Mamba (Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023):
// layers of states alone, without attention, feed-forward layers or positions. Falcon Mamba (Zuo et
// al., "Falcon Mamba: The First Competitive Attention-free 7B Language Model", 2024) normalizes
// steps, inputs and outputs of the states; GGUF has it under Mamba's name.
func init() {
	a := architecture{
		title: "Mamba", about: "state-space layers alone: no attention, no feed-forward layers, no positions",
		gguf: "mamba", hub: "MambaForCausalLM", kind: "mamba", adapt: mamba, block: states, zeros: true,
		base: "backbone.", hubNames: stateNames("*layers.#.mixer.", backboneNames), ggufNames: stateGGUF, layouts: stateLayouts,
		keys:     map[string]string{"rms_norm_eps": "layer_norm_epsilon"},
		defaults: map[string]int{"num_attention_heads": 1, "intermediate_size": 1, "max_position_embeddings": unlimited},
	}
	register(a)
	a.title, a.about = "Falcon Mamba", "Mamba with norms of steps, inputs and outputs of the states"
	a.gguf, a.hub, a.kind, a.adapt = "", "FalconMambaForCausalLM", "falcon_mamba", falconMamba
	register(a)
}

// backboneNames are the names in checkpoints of models whose layers have one norm.
var backboneNames = names{
	"token_embd":  "*embeddings",
	"output_norm": "*norm_f",
	"attn_norm":   "*layers.#.norm",
}

// states is a layer of states alone.
func states(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	return b.Add(x, mixer(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)))
}

func mamba(c *config, s *Spec) {
	if c.gguf {
		s.ggufStates(c)
		if c.flag("ssm.dt_b_c_rms", false) {
			s.StepNorm, s.StepEps = stepEven, s.Eps
		}
		return
	}
	s.epsilon(c, 1e-5)
	s.StateAct = s.Act
	s.Inner = int(c.number("expand", 2) * float64(s.Hidden))
	s.States, s.Taps = c.integer("state_size", 16), c.integer("conv_kernel", 4)
	s.StepRank = c.auto("time_step_rank", (s.Hidden+15)/16)
	s.ConvBias = c.biasIf("use_conv_bias", true)
	s.projected(c, "use_bias", true)
}

func falconMamba(c *config, s *Spec) {
	mamba(c, s)
	if c.has("intermediate_size") {
		s.Inner = s.FFN
	}
	s.projected(c, "use_bias", false)
	s.StepNorm, s.StepEps = stepEven, c.number("mixer_rms_eps", 1e-6)
}

// ggufStates reads GGUF's keys of states.
func (s *Spec) ggufStates(c *config) {
	s.Inner, s.States, s.Taps = c.integer("ssm.inner_size", -1), c.integer("ssm.state_size", -1), c.integer("ssm.conv_kernel", -1)
	s.StepRank = c.integer("ssm.time_step_rank", -1)
}
