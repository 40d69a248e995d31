package arch

import "github.com/realizar/realizar/internal/plan"

// StableLM 2 (Bellagamba et al., "Stable LM 2 1.6B Technical Report", 2024), and the models
// before: LLaMA with LayerNorms and a quarter of each head turned. The largest has
// attention beside the feed-forward layer and normalises each head by weights of its own.
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
	// What the first checkpoints call themselves.
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

// stablelmLayer goes by the tensors in GGUF, whose keys say nothing of norms of heads
// and not always the truth of the rest.
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
