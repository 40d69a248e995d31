package arch

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): learned
// positions and feed-forward layers without gates. Checkpoints store weights as [in, out].
func init() {
	register(architecture{
		title: "GPT-2", about: "learned positions, LayerNorm, no gate; transposed weights in safetensors",
		gguf: "gpt2", hub: "GPT2LMHeadModel", kind: "gpt2", adapt: gpt2, block: prenorm, norm: plan.LayerNorm,
		base: "transformer.", ffn: 4,
		keys: map[string]string{
			"num_hidden_layers": "n_layer", "hidden_size": "n_embd", "num_attention_heads": "n_head", "intermediate_size": "n_inner",
			"max_position_embeddings": "n_positions", "rms_norm_eps": "layer_norm_epsilon", "hidden_act": "activation_function",
		},
		hubNames: names{
			"token_embd": "*wte", "position_embd": "*wpe", "output_norm": "*ln_f",
			"attn_norm": "*h.#.ln_1", "attn_qkv": "*h.#.attn.c_attn", "attn_output": "*h.#.attn.c_proj",
			"ffn_norm": "*h.#.ln_2", "ffn_up": "*h.#.mlp.c_fc", "ffn_down": "*h.#.mlp.c_proj",
		},
		layouts: map[string]layout{"attn_qkv": transposed, "attn_output": transposed, "ffn_up": transposed, "ffn_down": transposed},
	})
}

func gpt2(c *config, s *Spec) {
	s.Learned, s.Ungated = true, true
	s.Act = c.activation("hidden_act", "gelu_new")
	s.QKVBias, s.OutBias, s.MLPBias = required, required, required
	if c.gguf {
		return
	}
	s.HeadDim, s.KVHeads, s.HeadBias = s.Hidden/s.Heads, s.Heads, without
	c.only("add_cross_attention", false)
	if !c.flag("scale_attn_weights", true) {
		s.AttentionScale = 1
	}
	if c.flag("scale_attn_by_inverse_layer_idx", false) {
		scale := s.AttentionScale
		if scale == 0 {
			scale = 1 / math.Sqrt(float64(s.HeadDim))
		}
		for i := range s.Windows {
			s.EachScale = append(s.EachScale, scale/float64(i+1))
		}
	}
}
