package arch_test

import (
	"maps"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

func init() {
	indexer := map[string]any{"attention.indexer.head_count": 4, "attention.indexer.key_length": 16, "attention.indexer.top_k": 12}
	names := combined(latentGGUFNames, map[string]string{
		"self_attn.indexer.wq_b": "indexer.attn_q_b", "self_attn.indexer.wk": "indexer.attn_k", "self_attn.indexer.k_norm": "indexer.k_norm",
		"self_attn.indexer.weights_proj": "indexer.proj",
	})
	keys := func(more map[string]any) map[string]any {
		all := map[string]any{}
		for _, m := range []map[string]any{unsplitKeys, splitKeys, v3Keys, indexer, more} {
			maps.Copy(all, m)
		}
		return all
	}
	change := func(t *testing.T, tensors map[string]*tensor.Tensor) {
		stackExperts(t, tensors)
		splitLatent(t, tensors)
	}
	ungrouped := map[string]any{"expert_group_count": 1, "expert_group_used_count": 1, "attention.layer_norm_rms_epsilon": 1e-5}
	moreConversions["deepseek-v32"] = conversion{arch: "deepseek32", names: names, config: keys(nil), change: change}
	moreConversions["glm-moe-dsa, by tensors"] = conversion{arch: "glm-dsa", names: names, config: keys(ungrouped), change: change}
	ungrouped = maps.Clone(ungrouped)
	ungrouped["attention.indexer.types"] = []bool{true, false, true, false}
	moreConversions["glm-moe-dsa"] = conversion{arch: "glm-dsa", names: names, config: keys(ungrouped), change: change}
}

// Which layers share a choice is in a list, a pattern or two numbers.
func TestSharedChoices(t *testing.T) {
	m := goldenModel(t, "glm-moe-dsa")
	for _, c := range []struct {
		name string
		keys map[string]any
		want int // nodes that choose
	}{
		{"a list", map[string]any{"indexer_types": []string{"full", "shared"}}, 1},
		{"letters", map[string]any{"indexer_types": nil, "index_topk_pattern": "FS"}, 1},
		{"a list under the name of letters", map[string]any{"indexer_types": nil, "index_topk_pattern": []string{"full", "shared"}}, 1},
		{"every fourth", map[string]any{"indexer_types": nil}, 1},
	} {
		_, model := built(t, m.with(c.keys, nil))
		p := model.Program
		choose := 0
		for i := range p.Nodes {
			if p.Nodes[i].Op == plan.Select {
				choose++
			}
		}
		if choose != c.want {
			t.Errorf("%s: %d nodes choose, want %d", c.name, choose, c.want)
		}
	}
}

// What sparse attention does not do is refused by name.
func TestSparseErrors(t *testing.T) {
	v32, glm := goldenModel(t, "deepseek-v32"), goldenModel(t, "glm-moe-dsa")
	set := func(m tiny, key string, value any) tiny { return m.with(map[string]any{key: value}, nil) }
	tinyErrors(t, []refusal{
		{"queries", set(goldenModel(t, "deepseek32-gguf"), "attention.q_lora_rank", nil), arch.ErrConfig, "there is no q_lora_rank; supported are queries computed from rows of their own"},
		{"short heads", set(v32, "index_head_dim", 1), arch.ErrConfig, "heads of the indexer have 1 elements, of which 2 are rotated"},
		{"many", set(v32, "index_topk", 1<<17), arch.ErrConfig, "index_topk is 131072, want at most 65536"},
		{"rotation", set(v32, "indexer_rope_interleave", true), arch.ErrConfig, "indexer_rope_interleave is true; supported is false"},
		{"other rotation", set(glm, "rope_interleave", false), arch.ErrConfig, "rope_interleave is false; supported is true"},
		{"kinds", set(glm, "layer_types", []string{"deepseek_sparse_attention", "full_attention"}), arch.ErrConfig, `layer_types[1] is "full_attention"`},
		{"none before", set(glm, "indexer_types", []string{"shared", "full"}), arch.ErrTensor, "layer 0 has no indexer, and there is none before it"},
		{"other types", set(glm, "indexer_types", []string{"full", "half"}), arch.ErrConfig, `indexer_types[1] is "half", want "full" or "shared"`},
		{"letters", glm.with(map[string]any{"indexer_types": nil, "index_topk_pattern": "FX"}, nil), arch.ErrConfig, `index_topk_pattern[1] is 'X', want 'F' or 'S'`},
		{"few letters", glm.with(map[string]any{"indexer_types": nil, "index_topk_pattern": "F"}, nil), arch.ErrConfig, "index_topk_pattern names 1 layers of 2"},
		{"missing", set(glm, "indexer_types", nil).with(map[string]any{"index_topk_freq": 1}, nil), arch.ErrTensor, "layers.1.self_attn.indexer"},
	})
}
