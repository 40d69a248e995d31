package arch_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
)

// TestFormsRefused checks that options which the newer forms of attention and of residuals do not
// compute are errors with the option's name.
func TestFormsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		golden string
		config map[string]any
		says   string
	}{
		"both ways":        {"gemma4-moe", map[string]any{"use_bidirectional_attention": "all"}, `use_bidirectional_attention is "all"`},
		"no rotation":      {"gemma4-moe", map[string]any{"rope_parameters": nil}, "rope_parameters is missing"},
		"other overrides":  {"gemma4-moe", map[string]any{"per_layer_config": map[string]any{"1": map[string]any{"hidden_size": 8}}}, "per_layer_config.1.hidden_size is set"},
		"two widths":       {"gemma4-moe", map[string]any{"layer_types": []string{"full_attention", "full_attention"}, "per_layer_config": map[string]any{"1": map[string]any{"head_dim": 16}}}, "layer 1 has heads of 16, want 8"},
		"nothing to share": {"gemma4-moe", map[string]any{"num_kv_shared_layers": 1}, "layer 1 has no layer of its kind"},
		"other windows":    {"mimo-v2-flash", map[string]any{"swa_head_dim": 16}, "swa_head_dim is 16; supported is 12"},
		"marks of 2":       {"mimo-v2-flash", map[string]any{"hybrid_layer_pattern": []int{0, 2}}, "hybrid_layer_pattern is [0 2]"},
		"few marks":        {"mimo-v2-flash", map[string]any{"moe_layer_freq": []int{0}}, "moe_layer_freq is [0]"},
		"other kinds":      {"llama4-text", map[string]any{"layer_types": []string{"chunked_attention", "sliding_attention"}}, `layer_types[1] is "sliding_attention"`},
		"no taps":          {"lfm2", map[string]any{"conv_L_cache": 4}, "by the configuration"},
		"too few shares":   {"gemma3n", map[string]any{"activation_sparsity_pattern": []float64{0.5}}, "the sparsity of gates is given for 1 layers of 4"},
		"all of a gate":    {"gemma3n", map[string]any{"activation_sparsity_pattern": []float64{1, 0, 0, 0}}, "activation_sparsity_pattern[0] is 1"},
		"no such stream":   {"gemma3n", map[string]any{"altup_active_idx": 2}, "stream 2 is active, of 2"},
	} {
		m := goldenModel(t, c.golden)
		if inner, ok := m.config["text_config"].(map[string]any); ok {
			inner = maps.Clone(inner)
			maps.Copy(inner, c.config)
			c.config = map[string]any{"text_config": inner}
		}
		_, err := buildFile(t, m.with(c.config, nil).write(t))
		if err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, arch.ErrConfig) && !errors.Is(err, arch.ErrTensor) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}

// TestTextOfOthers checks that tensors beside a language model are left out only if the file's
// configuration has a language model of its own.
func TestTextOfOthers(t *testing.T) {
	m := goldenModel(t, "llama4-text").with(nil, map[string][]int{"vision_model.class_embedding": {8}})
	if _, err := buildFile(t, m.write(t)); !errors.Is(err, arch.ErrTensor) || !strings.Contains(err.Error(), "vision_model.class_embedding") {
		t.Errorf("error %v, want one about the tensor", err)
	}
	m = goldenModel(t, "llama4").with(nil, map[string][]int{"vision_tower.x": {8}, "strange.x": {8}})
	if _, err := buildFile(t, m.write(t)); !errors.Is(err, arch.ErrTensor) || !strings.Contains(err.Error(), "strange.x") || strings.Contains(err.Error(), "vision_tower") {
		t.Errorf("error %v, want one about the strange tensor alone", err)
	}
}

// TestSharedLayers checks which layers' keys and values the last layers of Gemma 4 read.
func TestSharedLayers(t *testing.T) {
	m, err := buildFile(t, goldenModel(t, "gemma4").write(t))
	if err != nil {
		t.Fatal(err)
	}
	var states []int
	for _, n := range m.Program.Nodes {
		if n.Op == plan.Attention {
			states = append(states, n.State)
		}
	}
	if len(m.Program.States) != 2 || len(states) != 4 || states[2] != states[0] || states[3] != states[1] {
		t.Errorf("%d states; the layers use %v", len(m.Program.States), states)
	}
}
