package arch

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Falcon-H1 (Zuo et al., "Falcon-H1: A Family of Hybrid-Head Language Models Redefining Efficiency
// and Performance", 2025): in every layer attention and Mamba-2's states read the same input and
// are added. Constants multiply most values; GGUF files have them in the weights.
func init() {
	layouts := map[string]layout{"ssm_a": decays, "ssm_conv1d": falconConv}
	register(architecture{
		title: "Falcon-H1", about: "attention and Mamba-2's states side by side in each layer, with multipliers",
		gguf: "falcon-h1", hub: "FalconH1ForCausalLM", kind: "falcon_h1", adapt: falconH1, block: falconH1Block,
		hubNames: dualNames("*layers.#.mamba.", names{
			"output_norm": "*final_layernorm",
			"ffn_norm":    "*layers.#.pre_ff_layernorm",
			"ffn_gate":    "*layers.#.feed_forward.gate_proj",
			"ffn_up":      "*layers.#.feed_forward.up_proj",
			"ffn_down":    "*layers.#.feed_forward.down_proj",
		}),
		ggufNames: stateGGUF, layouts: layouts,
		defaults: map[string]int{"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192},
	})
}

// falconMultipliers are the constants that multiply values of Falcon-H1.
type falconMultipliers struct {
	states              [5]float64 // the gate, the values, the inputs, the outputs and the steps of the states
	statesIn, statesOut float64
	attendIn, attendOut float64
	gate, down          float64
}

func falconH1(c *config, s *Spec) {
	s.Multipliers = &falconMultipliers{states: [5]float64{1, 1, 1, 1, 1}, statesIn: 1, statesOut: 1, attendIn: 1, attendOut: 1, gate: 1, down: 1}
	if c.gguf {
		s.dualGGUF(c)
		s.GateNorm = asFoundNorm
		return
	}
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	mlpBias(c, s)
	s.hybridStates(c)
	if c.m.Type("mamba_d_ssm") != "null" {
		s.Inner = c.integer("mamba_d_ssm", 1024)
	}
	s.NormGroups = s.StateGroups
	switch {
	case !c.flag("mamba_rms_norm", false):
		s.GateNorm, s.NormGroups = gateAlone, 1
	case c.flag("mamba_norm_before_gate", true):
		s.GateNorm = normThenGate
	}
	s.SSMOutBias = c.biasIf("projectors_bias", false)
	m := s.Multipliers
	s.EmbeddingScale, s.LogitScale = c.number("embedding_multiplier", 1), c.number("lm_head_multiplier", 1)
	s.AttentionScale = c.number("key_multiplier", 1) / math.Sqrt(float64(s.HeadDim))
	m.statesIn, m.statesOut = c.number("ssm_in_multiplier", 1), c.number("ssm_out_multiplier", 1)
	m.attendIn, m.attendOut = c.number("attention_in_multiplier", 1), c.number("attention_out_multiplier", 1)
	if c.has("ssm_multipliers") {
		copy(m.states[:], c.numbers("ssm_multipliers", len(m.states)))
	}
	if c.has("mlp_multipliers") {
		list := c.numbers("mlp_multipliers", 2)
		m.gate, m.down = list[0], list[1]
	}
}

// falconH1Block adds the results of attention and of the states, and then a feed-forward layer.
func falconH1Block(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	m := s.Multipliers
	h := norm(b, s, w, x, "attn_norm", s.Hidden)
	states := b.Scale(dual(b, s, w, b.Scale(h, m.statesIn)), m.statesOut)
	attended := b.Scale(attention(b, s, w, b.Scale(h, m.attendIn)), m.attendOut)
	x = b.Add(x, b.Add(states, attended))
	h = norm(b, s, w, x, "ffn_norm", s.Hidden)
	gate, up := b.Scale(linear(b, w, h, "ffn_gate", s.FFN, s.MLPBias), m.gate), linear(b, w, h, "ffn_up", s.FFN, s.MLPBias)
	y := linear(b, w, b.GLU(gate, up, plan.GLUAttr{Act: s.Act}), "ffn_down", s.Hidden, s.MLPBias)
	return b.Add(x, b.Scale(y, m.down))
}

// falconConv squeezes the convolution of values, inputs and outputs of the states, and multiplies
// its rows by their constants, which multiply what it reads.
func falconConv(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	flat, err := squeezed(s, t)
	if err != nil || len(flat.Shape) == 1 {
		return flat, err
	}
	if flat.DType.BlockLen() != 1 || flat.Source != nil || flat.Shape[0] != s.Inner+2*s.StateGroups*s.States {
		return nil, fmt.Errorf("%w: %s is %v of shape %v, want unquantized numbers of %d rows", ErrTensor, t.Name, t.DType, t.Shape, s.Inner+2*s.StateGroups*s.States)
	}
	m, inner, group := s.Multipliers.states, s.Inner, s.StateGroups*s.States
	return &tensor.Tensor{Name: t.Name, DType: tensor.F32, Shape: flat.Shape, Source: mapped{flat, func(row int, x float32) float32 {
		switch {
		case row < inner:
			return x * float32(m[1])
		case row < inner+group:
			return x * float32(m[2])
		}
		return x * float32(m[3])
	}}}, nil
}
