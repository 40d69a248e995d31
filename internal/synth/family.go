package synth

import (
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/modelfile"
)

// A family says what the layers of an architecture have beside, or in place of, what those of LLaMA
// have.
type family struct {
	attention  func(l *layout, layer int) // nil: queries, keys and values
	mixer      func(l *layout, layer int) // in layers without attention
	ffnNorm    string                     // name of the norm before the feed-forward layer; "": ffn_norm
	outputNorm string                     // "": output_norm
	sharedGate bool                       // the shared expert has a gate
	keys       func(s *Shape) map[string]any
}

// families are the families by general.architecture. Those that are not here are LLaMA's.
var families = map[string]*family{
	"lfm2":      {mixer: shortConvolution, outputNorm: "token_embd_norm", keys: lfm2Keys},
	"qwen35":    {mixer: deltaNet, ffnNorm: "post_attention_norm", keys: deltaKeys},
	"qwen35moe": {mixer: deltaNet, ffnNorm: "post_attention_norm", sharedGate: true, keys: deltaKeys},
	"deepseek2": {attention: latentAttention, keys: latentKeys},
}

func (s *Shape) family() *family {
	if f := families[s.Architecture]; f != nil {
		return f
	}
	return &family{}
}

// shortConvolution is the gated convolution of LFM2.
func shortConvolution(l *layout, i int) {
	s := l.s
	l.vector(i, block(i)+"shortconv.conv.weight", 0, 0.6, s.Hidden, s.Taps)
	l.matrix(other, i, block(i)+"shortconv.in_proj", 3*s.Hidden, s.Hidden, 1)
	l.matrix(other, i, block(i)+"shortconv.out_proj", s.Hidden, s.Hidden, l.fromMixer)
}

// lfm2Keys says which layers have no attention by their number of key/value heads.
func lfm2Keys(s *Shape) map[string]any {
	kv := make([]int32, s.Layers)
	for i := range kv {
		if s.attends(i) {
			kv[i] = int32(s.KVHeads)
		}
	}
	return map[string]any{"attention.head_count_kv": kv, "shortconv.l_cache": uint32(s.Taps)}
}

// deltaNet is the gated delta net of Qwen 3.5. Its states decay by a few percent for each token.
func deltaNet(l *layout, i int) {
	s, d := l.s, l.s.Delta
	values := d.Values * d.ValueDim
	all := 2*d.Keys*d.KeyDim + values
	l.matrix(attnV, i, block(i)+"attn_qkv", all, s.Hidden, 1)
	l.matrix(other, i, block(i)+"attn_gate", values, s.Hidden, 1)
	l.matrix(other, i, block(i)+"ssm_beta", d.Values, s.Hidden, 1)
	l.matrix(other, i, block(i)+"ssm_alpha", d.Values, s.Hidden, 1)
	l.vector(i, block(i)+"ssm_conv1d.weight", 0, 0.6, all, s.Taps)
	l.vector(i, block(i)+"ssm_a", -0.5, 0.05, d.Values)
	l.vector(i, block(i)+"ssm_dt.bias", -2, 0.3, d.Values)
	l.norm(i, block(i)+"ssm_norm", d.ValueDim)
	l.matrix(other, i, block(i)+"ssm_out", s.Hidden, values, l.fromFFN) // its inputs are normalized, and no averages
}

func deltaKeys(s *Shape) map[string]any {
	d := s.Delta
	return map[string]any{
		"full_attention_interval": uint32(s.Attending[0] + 1), "ssm.conv_kernel": uint32(s.Taps), "ssm.state_size": uint32(d.KeyDim),
		"ssm.group_count": uint32(d.Keys), "ssm.time_step_rank": uint32(d.Values), "ssm.inner_size": uint32(d.Values * d.ValueDim),
	}
}

// latentAttention is DeepSeek's, with a projection of queries in one piece.
func latentAttention(l *layout, i int) {
	s, a := l.s, l.s.Latent
	l.matrix(attnQ, i, block(i)+"attn_q", s.Heads*(a.Plain+a.Turned), s.Hidden, 1)
	l.matrix(other, i, block(i)+"attn_kv_a_mqa", a.Rank+a.Turned, s.Hidden, 1)
	l.norm(i, block(i)+"attn_kv_a_norm", a.Rank)
	l.stack(other, i, block(i)+"attn_k_b", s.Heads, a.Rank, a.Plain, 1)
	l.stack(other, i, block(i)+"attn_v_b", s.Heads, a.Value, a.Rank, 1)
	l.matrix(attnOutput, i, block(i)+"attn_output", s.Hidden, s.Heads*a.Value, l.fromMixer)
}

// latentKeys has the scaling of positions of DeepSeek-V2's models, and experts by softmax whose weights
// are not normalized.
func latentKeys(s *Shape) map[string]any {
	a := s.Latent
	return map[string]any{
		"attention.value_length": uint32(a.Rank), "attention.key_length_mla": uint32(a.Plain + a.Turned), "attention.value_length_mla": uint32(a.Value),
		"attention.kv_lora_rank": uint32(a.Rank), "leading_dense_block_count": uint32(s.Dense),
		"expert_gating_func": uint32(1), "expert_weights_scale": float32(1), "expert_weights_norm": false,
		"rope.scaling.type": "yarn", "rope.scaling.factor": float32(40), "rope.scaling.original_context_length": uint32(4096), "rope.scaling.yarn_log_multiplier": float32(0.0707),
	}
}

// withKeys returns metadata with the family's own keys, which replace others.
func (s *Shape) withKeys(meta []modelfile.KeyValue) []modelfile.KeyValue {
	f := s.family()
	if f.keys == nil {
		return meta
	}
	own := f.keys(s)
	prefix := s.Architecture + "."
	for i := range meta {
		key, _ := strings.CutPrefix(meta[i].Key, prefix)
		if v, ok := own[key]; ok {
			meta[i].Value = v
			delete(own, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		meta = append(meta, modelfile.KeyValue{Key: prefix + key, Value: own[key]})
	}
	return meta
}
