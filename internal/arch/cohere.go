package arch

import "github.com/realizar/realizar/internal/plan"

// Command R (Cohere, model card, 2024): attention and the feed-forward layer in parallel after one
// norm without bias, neighboring elements rotated as pairs, and scaled logits. Command R+
// normalizes queries and keys by head, each head with its own weights.
func init() {
	register(architecture{
		title: "Command R, R+", about: "one norm for attention and feed-forward side by side, neighbouring pairs turned, scaled logits; R+ normalises queries and keys by head",
		gguf: "command-r", hub: "CohereForCausalLM", kind: "cohere", keys: cohereKeys, norm: plan.LayerNorm, adapt: cohere, block: commandR,
	})
}

var cohereKeys = map[string]string{"rms_norm_eps": "layer_norm_eps"}

func cohere(c *config, s *Spec) {
	cohereSpec(c, s)
	if c.gguf {
		return
	}
	s.RopeBase = 500000
	s.Context = max(s.Context, c.integer("model_max_length", 1)) // max_position_embeddings may be a smaller bound of memory
	if c.flag("use_qk_norm", false) {
		s.QKNorm = qkEach
	}
}

// cohereSpec reads what Command R and Command R7B share.
func cohereSpec(c *config, s *Spec) {
	s.Rope.Interleaved = true
	s.epsilon(c, 1e-5)
	s.LogitScale = c.number("logit_scale", 0.0625)
	attentionBias(c, s)
	if !c.gguf {
		s.NormBias = without
	}
}

// commandR is parallel, with norms of queries and keys if the file has them: GGUF has no key for
// these.
func commandR(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if !w.hub && w.has("attn_q_norm") {
		s.QKNorm = qkEach
	}
	return parallel(b, s, w, x)
}
