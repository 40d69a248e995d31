package arch

// hubTop says what safetensors checkpoints call the tensors outside the layers.
var hubTop = map[string]string{
	"token_embd":  "model.embed_tokens",
	"output_norm": "model.norm",
	"output":      "lm_head",
}

// hubLayer says what they call the tensors of a layer, after its prefix.
var hubLayer = map[string]string{
	"attn_norm":   "input_layernorm",
	"attn_q":      "self_attn.q_proj",
	"attn_k":      "self_attn.k_proj",
	"attn_v":      "self_attn.v_proj",
	"attn_qkv":    "self_attn.qkv_proj",
	"attn_output": "self_attn.o_proj",
	"attn_q_norm": "self_attn.q_norm",
	"attn_k_norm": "self_attn.k_norm",
	"ffn_norm":    "post_attention_layernorm",
	"ffn_gate":    "mlp.gate_proj",
	"ffn_up":      "mlp.up_proj",
	"ffn_gate_up": "mlp.gate_up_proj",
	"ffn_down":    "mlp.down_proj",
}

// derived are suffixes of tensors that a checkpoint may hold although they
// follow from its configuration.
var derived = []string{".rotary_emb.inv_freq"}
