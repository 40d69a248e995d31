package arch

import "github.com/realizar/realizar/internal/plan"

// GPT-J (Wang and Komatsuzaki, "GPT-J-6B", 2021): attention and the feed-forward layer in parallel,
// one norm for both, and the first elements of each head rotated in neighboring pairs.
func init() {
	register(architecture{
		title: "GPT-J", about: "attention and feed-forward side by side after one LayerNorm, neighbouring pairs of a part of a head turned",
		hub: "GPTJForCausalLM", kind: "gptj", adapt: gptj, block: parallel, norm: plan.LayerNorm,
		base: "transformer.", ffn: 4,
		keys: map[string]string{
			"num_hidden_layers": "n_layer", "hidden_size": "n_embd", "num_attention_heads": "n_head", "intermediate_size": "n_inner",
			"max_position_embeddings": "n_positions", "rms_norm_eps": "layer_norm_epsilon", "hidden_act": "activation_function",
		},
		hubNames: names{
			"token_embd": "*wte", "output_norm": "*ln_f",
			"attn_norm": "*h.#.ln_1", "attn_q": "*h.#.attn.q_proj", "attn_k": "*h.#.attn.k_proj", "attn_v": "*h.#.attn.v_proj", "attn_output": "*h.#.attn.out_proj",
			"ffn_up": "*h.#.mlp.fc_in", "ffn_down": "*h.#.mlp.fc_out",
		},
	})
}

func gptj(c *config, s *Spec) {
	s.Ungated = true
	s.Act = c.activation("hidden_act", "gelu_new")
	s.HeadDim, s.KVHeads = s.Hidden/s.Heads, s.Heads
	s.MLPBias, s.HeadBias = required, required
	s.Rope.Interleaved = true
	if c.m.Type("rotary_dim") == "null" {
		c.failf("rotary_dim is null, want the number of elements of a head to rotate")
	}
	turned := c.integer("rotary_dim", 64)
	s.Partial = (float64(turned) + 0.5) / float64(s.HeadDim) // the product with HeadDim is truncated
}
