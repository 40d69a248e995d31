package arch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Ling and Ring (Ling team, "Every FLOP Counts: Scaling a 300B Mixture-of-Experts LING LLM without
// Premium GPUs", 2025; "Every Activation Boosted: Scaling General Reasoner to 1 Trillion Open Language
// Foundation", 2025), whose class is Bailing: queries, keys and values in one weight, experts and
// shared ones. The second version chooses experts as DeepSeek-V3 does and turns half of each head,
// whose queries and keys it normalizes. transformers lacks both; the formulas are those of the files
// beside the checkpoints.
func init() {
	a := architecture{
		title: "Ling 1, 1.5", about: "experts by softmax, normalised, and shared ones; the head may be normalised by column",
		gguf: "bailingmoe", hub: "BailingMoeForCausalLM", kind: "bailing_moe", adapt: bailing, block: prenorm,
		hubNames: names{
			"token_embd":  "*word_embeddings",
			"attn_qkv":    "*layers.#.attention.query_key_value",
			"attn_output": "*layers.#.attention.dense",
			"attn_q_norm": "*layers.#.attention.query_layernorm",
			"attn_k_norm": "*layers.#.attention.key_layernorm",
			"exp_probs_b": "*layers.#.mlp.gate.expert_bias.",
		},
		keys: map[string]string{"n_shared_experts": "num_shared_experts", "scoring_func": "score_function"},
	}
	register(a)
	a.title, a.about = "Ling 2.0, Ring 2.0", "experts by sigmoid with a bias to choose by, in groups, and shared ones; normalised queries and keys, half of a head turned"
	a.gguf, a.hub, a.kind, a.adapt = "bailingmoe2", "BailingMoeV2ForCausalLM", "bailing_moe_v2", bailingV2
	register(a)
}

func bailing(c *config, s *Spec) {
	s.Rope.Interleaved = c.gguf
	s.bailing(c, Mixture{Experts: 64, Route: plan.RouteAttr{Used: 6, Normalize: true}})
	if !c.gguf && c.flag("use_qk_norm", false) {
		s.QKNorm = qkHeads
	}
	s.NormHead = !c.gguf && c.flag("norm_head", false) // GGUF has the normalized head
	c.only("norm_softmax", false)
	c.only("multi_gate", false)
}

func bailingV2(c *config, s *Spec) {
	s.predicting(c)
	m := Mixture{
		Experts: 256, ChoiceBias: asFound,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupTop: 2},
	}
	if c.gguf {
		m.Route.Scale, m.Route.Groups, m.Route.GroupsUsed = 1, 1, 1
	} else if c.flag("moe_router_enable_expert_bias", true) {
		m.ChoiceBias = required
	}
	s.bailing(c, m)
	if s.QKNorm = qkHeads; !c.gguf && !c.flag("use_qk_norm", true) {
		s.QKNorm = qkPlain
	}
	if s.Partial = 0.5; c.has("rotary_dim") {
		s.Partial = float64(c.integer("rotary_dim", -1)) / float64(max(1, s.HeadDim))
	}
}

// bailing reads what both versions have.
func (s *Spec) bailing(c *config, m Mixture) {
	s.mixture(c, m)
	// A file says how wide one of the shared experts is.
	if c.gguf {
		s.SharedFFN = c.first("expert_shared_count", 0) * c.first("expert_shared_feed_forward_length", s.ExpertFFN)
		return
	}
	s.SharedFFN = c.first("num_shared_experts", 0) * c.integer("moe_shared_expert_intermediate_size", s.ExpertFFN)
	if c.flag("use_qkv_bias", false) {
		s.QKVBias = required
	}
	if c.flag("use_bias", false) {
		s.OutBias = required
	}
}

// columnNorms is a source of a vector: for each column of a matrix, 1 over the length of the column
// plus eps.
type columnNorms struct {
	of  *tensor.Tensor
	eps float64
}

// normedColumns returns the vector with which the input of a product is multiplied instead of dividing
// the columns of its weight by their lengths.
func normedColumns(t *tensor.Tensor) *tensor.Tensor {
	return &tensor.Tensor{Name: t.Name + " (columns)", DType: tensor.F32, Shape: []int{t.Cols()}, Source: columnNorms{t, 1e-7}}
}

// Parts implements [tensor.Source].
func (n columnNorms) Parts() []*tensor.Tensor { return []*tensor.Tensor{n.of} }

// ReadRows implements [tensor.Source].
func (n columnNorms) ReadRows(dst []byte, _, _ int) error {
	squares, row, bytes := make([]float64, n.of.Cols()), make([]float32, n.of.Cols()), n.of.RowBytes()
	err := n.of.EachRows(func(_ int, rows []byte) error {
		for at := 0; at < len(rows); at += bytes {
			if err := tensor.Dequantize(n.of.DType, row, rows[at:at+bytes]); err != nil {
				return fmt.Errorf("%s: %w", n.of.Name, err)
			}
			for i, v := range row {
				squares[i] += float64(v) * float64(v)
			}
		}
		return nil
	})
	for i, v := range squares {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(float32(1/(math.Sqrt(v)+n.eps))))
	}
	return err
}
