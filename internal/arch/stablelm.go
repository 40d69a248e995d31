package arch

import "github.com/realizar/realizar/internal/plan"

// StableLM 2 (Bellagamba et al., "Stable LM 2 1.6B Technical Report", 2024), and earlier models:
// LLaMA with LayerNorms and a quarter of each head rotated. The largest has attention and the
// feed-forward layer in parallel and normalizes each head with its own weights.
func init() {
	a := architecture{
		gguf: "stablelm", hub: "StableLmForCausalLM", kind: "stablelm", adapt: stablelm, block: stablelmLayer, norm: plan.LayerNorm,
		keys: map[string]string{"rms_norm_eps": "layer_norm_eps"},
		hubNames: names{
			"attn_q_norm": "*layers.#.self_attn.q_layernorm.norms.@", "attn_k_norm": "*layers.#.self_attn.k_layernorm.norms.@",
		},
		title: "StableLM 2", about: "LayerNorm, a quarter of a head turned; larger ones side by side with normalised queries and keys",
	}
	register(a)
	// The names in the first checkpoints.
	a.gguf, a.hub, a.kind, a.title = "", "StableLMEpochForCausalLM", "stablelm_epoch", "StableLM, the first checkpoints"
	a.keys = map[string]string{"rms_norm_eps": "norm_eps", "partial_rotary_factor": "rope_pct"}
	register(a)
}

func stablelm(c *config, s *Spec) {
	s.Partial = 0.25
	if c.gguf {
		return
	}
	s.HeadDim, s.HeadBias = s.Hidden/s.Heads, without
	s.Parallel = c.flag("use_parallel_residual", false)
	if c.flag("use_qkv_bias", false) {
		s.QKVBias = required
	}
	if c.flag("qk_layernorm", false) {
		s.QKNorm = qkEach
	}
}

// stablelmLayer decides by the tensors for GGUF, whose keys omit the norms of heads and can be
// wrong about the rest.
func stablelmLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if !w.hub {
		if s.Parallel = !w.has("ffn_norm"); w.has("attn_q_norm") {
			s.QKNorm = qkEach
		}
	}
	if s.Parallel {
		return parallel(b, s, w, x)
	}
	return prenorm(b, s, w, x)
}
