package arch_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// hybridNames are the names that llama.cpp's converter gives to the tensors of a layer.
var hybridNames = map[string]string{
	"input_layernorm.weight": "attn_norm.weight", "post_attention_layernorm.weight": "post_attention_norm.weight",
	"linear_attn.in_proj_qkv.weight": "attn_qkv.weight", "linear_attn.in_proj_z.weight": "attn_gate.weight",
	"linear_attn.in_proj_b.weight": "ssm_beta.weight", "linear_attn.in_proj_a.weight": "ssm_alpha.weight", "linear_attn.in_proj_ba.weight": "ssm_ba.weight",
	"linear_attn.conv1d.weight": "ssm_conv1d.weight", "linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias",
	"linear_attn.norm.weight": "ssm_norm.weight", "linear_attn.out_proj.weight": "ssm_out.weight",
	"self_attn.q_proj.weight": "attn_q.weight", "self_attn.k_proj.weight": "attn_k.weight", "self_attn.v_proj.weight": "attn_v.weight",
	"self_attn.o_proj.weight": "attn_output.weight", "self_attn.q_norm.weight": "attn_q_norm.weight", "self_attn.k_norm.weight": "attn_k_norm.weight",
	"mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight", "mlp.down_proj.weight": "ffn_down.weight",
	"mlp.gate.weight": "ffn_gate_inp.weight", "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
	"mlp.shared_expert.gate_proj.weight": "ffn_gate_shexp.weight", "mlp.shared_expert.up_proj.weight": "ffn_up_shexp.weight", "mlp.shared_expert.down_proj.weight": "ffn_down_shexp.weight",
}

// A hybridFile is a checkpoint that is written as llama.cpp's converter writes it.
type hybridFile struct {
	keyHeads, heads, keyDim, valueDim int
	tiled                             bool // value heads of one key are far apart
}

// rows returns the blocks of size rows, or elements, of x in that order.
func rows(x []float32, cols, size int, blocks []int) []float32 {
	var y []float32
	for _, b := range blocks {
		y = append(y, x[b*size*cols:][:size*cols]...)
	}
	return y
}

// tile returns the order of value heads in GGUF.
func (h *hybridFile) tile() []int {
	var order []int
	for i := range h.heads {
		if order = append(order, i); h.tiled {
			order[i] = i%h.keyHeads*(h.heads/h.keyHeads) + i/h.keyHeads
		}
	}
	return order
}

// convert returns the values of a tensor as the converter writes them.
func (h *hybridFile) convert(name string, x []float32, cols int) []float32 {
	keys := 2 * h.keyHeads * h.keyDim
	switch name {
	case "ssm_a":
		for i, v := range x {
			x[i] = float32(-math.Exp(float64(v)))
		}
		return rows(x, 1, 1, h.tile())
	case "ssm_dt.bias":
		return rows(x, 1, 1, h.tile())
	case "ssm_beta.weight", "ssm_alpha.weight":
		return rows(x, cols, 1, h.tile())
	case "attn_gate.weight":
		return rows(x, cols, h.valueDim, h.tile())
	case "attn_qkv.weight", "ssm_conv1d.weight":
		return append(slices.Clone(x[:keys*cols]), rows(x[keys*cols:], cols, h.valueDim, h.tile())...)
	case "ssm_out.weight":
		var y []float32
		for row := range slices.Chunk(x, cols) {
			y = append(y, rows(row, 1, h.valueDim, h.tile())...)
		}
		return y
	}
	if strings.HasSuffix(name, "_norm.weight") && name != "ssm_norm.weight" {
		for i := range x {
			x[i]++
		}
	}
	return x
}

// write writes the GGUF file of a checkpoint.
func (h *hybridFile) write(t *testing.T, folder, architecture string) string {
	t.Helper()
	f, err := modelfile.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	number := func(key string) int {
		n, _ := f.Meta().Int(key)
		return int(n)
	}
	h.keyHeads, h.heads = number("linear_num_key_heads"), number("linear_num_value_heads")
	h.keyDim, h.valueDim = number("linear_key_head_dim"), number("linear_value_head_dim")
	shared := h.heads / h.keyHeads
	var list []*tensor.Tensor
	add := func(name string, values []float32, shape ...int) {
		w := floatVector(values)
		w.Name, w.Shape = name, shape
		list = append(list, w)
	}
	for _, w := range f.Tensors() {
		x, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		cols := w.Cols()
		if _, name, ok := strings.Cut(w.Name, "model.layers."); ok {
			layer, name, _ := strings.Cut(name, ".")
			prefix := "blk." + layer + "."
			var expert int
			var part string
			if n, _ := fmt.Sscanf(name, "mlp.experts.%d.%s", &expert, &part); n == 2 {
				part = strings.TrimSuffix(part, "_proj.weight")
				add(fmt.Sprintf("%sffn_%s.%d.weight", prefix, part, expert), x, w.Shape...)
				continue
			}
			if name == "linear_attn.in_proj_qkvz.weight" {
				size := 2*h.keyDim + 2*shared*h.valueDim
				var parts [4][]float32
				for g := range h.keyHeads {
					at := g * size
					for i, n := range []int{h.keyDim, h.keyDim, shared * h.valueDim, shared * h.valueDim} {
						parts[i] = append(parts[i], x[at*cols:][:n*cols]...)
						at += n
					}
				}
				add(prefix+"attn_qkv.weight", slices.Concat(parts[0], parts[1], parts[2]), 2*h.keyHeads*h.keyDim+h.heads*h.valueDim, cols)
				add(prefix+"attn_gate.weight", parts[3], h.heads*h.valueDim, cols)
				continue
			}
			short := hybridNames[name]
			if short == "" {
				t.Fatalf("what is %s?", w.Name)
			}
			shape := w.Shape
			switch short {
			case "ssm_conv1d.weight":
				shape = []int{w.Shape[0], cols}
			case "ffn_gate_inp_shexp.weight":
				shape = []int{cols}
			}
			add(prefix+short, h.convert(short, x, cols), shape...)
			continue
		}
		name := map[string]string{"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}[w.Name]
		add(name, h.convert(name, x, cols), w.Shape...)
	}
	eps, _ := f.Meta().Float("rms_norm_eps")
	config := map[string]any{
		"general.architecture": architecture, "block_count": number("num_hidden_layers"), "embedding_length": number("hidden_size"), "context_length": number("max_position_embeddings"),
		"attention.head_count": number("num_attention_heads"), "attention.head_count_kv": number("num_key_value_heads"),
		"attention.key_length": number("head_dim"), "attention.value_length": number("head_dim"), "attention.layer_norm_rms_epsilon": eps,
		"rope.freq_base": 10000.0, "rope.dimension_count": number("head_dim") / 4, "full_attention_interval": 4,
		"ssm.conv_kernel": number("linear_conv_kernel_dim"), "ssm.state_size": h.keyDim, "ssm.group_count": h.keyHeads, "ssm.time_step_rank": h.heads, "ssm.inner_size": h.heads * h.valueDim,
	}
	if n := number("intermediate_size"); n > 0 {
		config["feed_forward_length"] = n
	}
	if n := number("num_experts"); n > 0 {
		config["expert_count"], config["expert_used_count"] = n, number("num_experts_per_tok")
		config["expert_feed_forward_length"], config["expert_shared_feed_forward_length"] = number("moe_intermediate_size"), number("shared_expert_intermediate_size")
	}
	var data bytes.Buffer
	if err := modelfile.WriteGGUF(&data, ggufMeta(config), list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A checkpoint with delta nets and its GGUF file compute the same.
func TestConvertedHybrids(t *testing.T) {
	for _, c := range []struct {
		folder, architecture string
		tiled                bool
	}{
		{"hf/qwen3-next", "qwen3next", false}, {"hf-more/qwen3-next-long", "qwen3next", false},
		{"hf/qwen3-5", "qwen35", true}, {"hf-more/qwen3-5-long", "qwen35", true}, {"hf-more/qwen3-5-moe", "qwen35moe", true},
	} {
		t.Run(c.folder, func(t *testing.T) {
			folder := filepath.Join(conformance(t), c.folder)
			h := hybridFile{tiled: c.tiled}
			m, err := buildFile(t, h.write(t, folder, c.architecture))
			if err != nil {
				t.Fatal(err)
			}
			agree(t, cpu.New(2), m, expected(t, filepath.Join(folder, "expected.safetensors")), inFloats.limits, inFloats.bound)
		})
	}
}

// What delta nets do not compute is refused by name.
func TestHybridErrors(t *testing.T) {
	for _, c := range []struct {
		model  string
		config map[string]any
		want   string
	}{
		{"qwen3-next", map[string]any{"layer_types": []string{"linear_attention", "sliding_attention"}}, `layer_types[1] is "sliding_attention"`},
		{"qwen3-next", map[string]any{"layer_types": []string{"linear_attention"}}, "layer_types names 1 layers of 2"},
		{"qwen3-next", map[string]any{"linear_num_value_heads": 3}, "3 value heads cannot share 2 keys"},
		{"qwen3-next", map[string]any{"hidden_act": "gelu"}, "hidden_act is"},
		{"qwen3-5", map[string]any{"attn_output_gate": false}, "attn_output_gate is false"},
		{"kimi-linear", map[string]any{"linear_attn_config": map[string]any{"full_attn_layers": []int{1, 2}, "kda_layers": []int{1}}}, "layer 1 must be in one of"},
		{"kimi-linear", map[string]any{"linear_attn_config": map[string]any{"full_attn_layers": []int{}, "kda_layers": []int{1}}}, "layer 2 must be in one of"},
		{"kimi-linear", map[string]any{"mla_use_nope": false}, "mla_use_nope is false"},
		{"kimi-linear", map[string]any{"mla_use_output_gate": true}, "mla_use_output_gate is true"},
		{"kimi-linear", map[string]any{"attn_res_block_size": 2}, "attn_res_block_size is 2"},
		{"kimi-linear", map[string]any{"hidden_act": "situ"}, `hidden_act is "situ"`},
		{"kimi-linear", map[string]any{"mlp_layer_types": []string{"dense", "wide"}}, `mlp_layer_types[1] is "wide"`},
	} {
		_, err := buildFile(t, goldenModel(t, c.model).with(c.config, nil).write(t))
		if !errors.Is(err, arch.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: %v, want %q", c.model, c.config, err, c.want)
		}
	}
	if _, err := buildFile(t, goldenModel(t, "qwen3-5").with(nil, map[string][]int{"model.layers.0.linear_attn.A_log": {5}}).write(t)); !errors.Is(err, arch.ErrTensor) {
		t.Errorf("five rates for four heads: %v", err)
	}
}
