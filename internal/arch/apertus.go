package arch

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// Apertus (Swiss AI Initiative, "Apertus: Democratizing Open and Compliant LLMs for Global Language
// Environments", 2025): queries and keys normalized by head, and xIELU without a gate, whose
// parameters are those of each layer. GGUF has them as lists of metadata.
func init() {
	register(architecture{
		title: "Apertus", about: "xIELU without a gate, queries and keys normalised by head",
		gguf: "apertus", hub: "ApertusForCausalLM", kind: "apertus", adapt: apertus, block: prenorm,
		hubNames: names{
			"attn_norm": "*layers.#.attention_layernorm", "ffn_norm": "*layers.#.feedforward_layernorm",
			"xielu_p": "*layers.#.mlp.act_fn.alpha_p.", "xielu_n": "*layers.#.mlp.act_fn.alpha_n.", "xielu_beta": "*layers.#.mlp.act_fn.beta.", "xielu_eps": "*layers.#.mlp.act_fn.eps.",
		},
	})
}

func apertus(c *config, s *Spec) {
	s.QKNorm, s.Ungated = qkHeads, true
	s.epsilon(c, 1e-5)
	attentionBias(c, s)
	if c.gguf {
		list := func(key string) []float64 {
			values, ok := c.m.Floats(key)
			if !ok || len(values) != s.Layers {
				c.failf("%s: want a list of %d numbers, is %d of type %q", key, s.Layers, len(values), c.m.Type(key))
				return make([]float64, min(max(s.Layers, 0), maxLayers))
			}
			return values
		}
		s.XIELU = true
		p, n, beta, eps := list("xielu.alpha_p"), list("xielu.alpha_n"), list("xielu.beta"), list("xielu.eps")
		for i := range p {
			s.Curves = append(s.Curves, curveOf(p[i], n[i], beta[i], eps[i]))
		}
		return
	}
	s.RopeBase = 12e6
	if !c.hasAny("rope_parameters.") && !c.hasAny("rope_scaling.") && !c.has("rope_theta") {
		c.failf("rope_parameters, rope_scaling and rope_theta are missing")
	}
}

// curve returns the parameters of a layer's xIELU.
func (l layer) curve(s *Spec) plan.Curve {
	if s.Curves != nil {
		return s.Curves[l.index]
	}
	number := func(short string) float64 {
		t := l.weight(short)
		values, err := t.Float32s()
		if err != nil || len(values) != 1 {
			l.b.Fail(fmt.Errorf("%w: %s has shape %v, want one number", ErrTensor, t.Name, t.Shape))
		}
		return float64(values[0])
	}
	return curveOf(number("xielu_p"), number("xielu_n"), number("xielu_beta"), number("xielu_eps"))
}

// curveOf returns the parameters of xIELU. Files have the positive ones before their softplus.
func curveOf(p, n, beta, eps float64) plan.Curve {
	softplus := func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
	return plan.Curve{P: softplus(p), N: beta + softplus(n), Beta: beta, Eps: eps}
}
