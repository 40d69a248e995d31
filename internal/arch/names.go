package arch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/nearest"
)

// names maps the short names of tensors in formulas, which are GGUF's, to the names in a file. In a
// name, * is the prefix of all names of a model (absent in checkpoints of a bare model), # is the
// layer's number and @ an expert's. The suffix .weight or .bias follows; a name that ends in a full
// stop is complete. Names between bars are alternatives, of which a file has one. A bias may have its
// own short name, which ends in .bias. Tensors with all experts end in _exps, or in _exps_t if each is
// transposed; tensors with one expert end in _exp.
type names map[string]string

// hubNames are the names in safetensors checkpoints, unless an architecture has its own.
var hubNames = names{
	"token_embd":  "*embed_tokens",
	"output_norm": "*norm",
	"output":      "lm_head",

	"attn_norm":   "*layers.#.input_layernorm",
	"attn_q":      "*layers.#.self_attn.q_proj",
	"attn_k":      "*layers.#.self_attn.k_proj",
	"attn_v":      "*layers.#.self_attn.v_proj",
	"attn_qkv":    "*layers.#.self_attn.qkv_proj",
	"attn_output": "*layers.#.self_attn.o_proj",
	"attn_q_norm": "*layers.#.self_attn.q_norm",
	"attn_k_norm": "*layers.#.self_attn.k_norm",
	"ffn_norm":    "*layers.#.post_attention_layernorm",
	"ffn_gate":    "*layers.#.mlp.gate_proj",
	"ffn_up":      "*layers.#.mlp.up_proj",
	"ffn_gate_up": "*layers.#.mlp.gate_up_proj",
	"ffn_down":    "*layers.#.mlp.down_proj",

	"ffn_gate_inp":     "*layers.#.mlp.gate",
	"exp_probs_b":      "*layers.#.mlp.gate.e_score_correction_bias.",
	"ffn_gate_exp":     "*layers.#.mlp.experts.@.gate_proj",
	"ffn_up_exp":       "*layers.#.mlp.experts.@.up_proj",
	"ffn_down_exp":     "*layers.#.mlp.experts.@.down_proj",
	"ffn_gate_up_exps": "*layers.#.mlp.experts.gate_up_proj.",
	"ffn_down_exps":    "*layers.#.mlp.experts.down_proj.",
	"ffn_gate_shexp":   "*layers.#.mlp.shared_experts.gate_proj",
	"ffn_up_shexp":     "*layers.#.mlp.shared_experts.up_proj",
	"ffn_down_shexp":   "*layers.#.mlp.shared_experts.down_proj",
}

// ggufNames are the names in older GGUF files, which have a tensor for each expert.
var ggufNames = names{
	"ffn_gate_exp": "blk.#.ffn_gate.@",
	"ffn_up_exp":   "blk.#.ffn_up.@",
	"ffn_down_exp": "blk.#.ffn_down.@",
}

// sandwichNames are the names in checkpoints with norms before and after each part.
var sandwichNames = names{
	"post_attention_norm": "*layers.#.post_attention_layernorm",
	"ffn_norm":            "*layers.#.pre_feedforward_layernorm",
	"post_ffw_norm":       "*layers.#.post_feedforward_layernorm",
}

// postnormNames are the names in checkpoints with norms only after each part.
var postnormNames = names{
	"post_attention_norm": "*layers.#.post_attention_layernorm",
	"post_ffw_norm":       "*layers.#.post_feedforward_layernorm",
}

// name returns the file's name of a tensor.
func (l layer) name(short, suffix string) string { return l.numbered(short, suffix, -1) }

// numbered returns the file's name of an expert's tensor.
func (l layer) numbered(short, suffix string, expert int) string {
	name, ok := l.names[short+suffix]
	if !ok {
		name, ok = l.names[short]
	}
	switch {
	case ok:
	case l.hub:
		name = hubNames[short]
	case ggufNames[short] != "":
		name = ggufNames[short]
	case l.index == noLayer:
		name = short
	default:
		name = "blk.#." + short
	}
	first := ""
	for one := range strings.SplitSeq(name, "|") {
		one = l.complete(short, one, suffix, expert)
		if _, ok := l.f.Tensor(one); ok {
			return one
		}
		first = cmp.Or(first, one)
	}
	return first
}

// complete returns the file's name of a tensor by one of its names.
func (l layer) complete(short, name, suffix string, expert int) string {
	name = strings.NewReplacer("*", l.base, "#", strconv.Itoa(l.index-l.before), "@", strconv.Itoa(expert)).Replace(name)
	if short == "output" {
		name = l.headBase + name
	}
	if whole, ok := strings.CutSuffix(name, "."); ok {
		return whole
	}
	return name + suffix
}

// derived are suffixes of tensors that a checkpoint may contain although they follow from its
// configuration.
var derived = []string{".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias", "embeddings.position_ids", "embeddings.token_type_ids"}

// nearestOf returns up to three names of known that are most similar to name, quoted, most similar
// first.
func nearestOf(name string, known []string) string {
	var quoted []string
	for _, k := range nearest.Names(name, known, 3) {
		quoted = append(quoted, fmt.Sprintf("%q", k))
	}
	return strings.Join(quoted, ", ")
}
