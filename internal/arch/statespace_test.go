package arch_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A statesConversion says how llama.cpp's converter turns a checkpoint with states into GGUF.
type statesConversion struct {
	arch   string
	config func(hub func(key string) float64) map[string]any // keys of GGUF from those of config.json
	factor func(name string, row int) float64                // multiplies weights, or nil
}

// statesNames are the names that converters give to tensors, by the end of the checkpoint's name
// after the layer's number.
var statesNames = map[string]string{
	"embeddings.weight": "token_embd.weight", "embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight",
	"norm_f.weight": "output_norm.weight", "final_layernorm.weight": "output_norm.weight", "norm.weight": "output_norm.weight",
	".norm.weight": "attn_norm.weight", ".input_layernorm.weight": "attn_norm.weight", ".pre_ff_layernorm.weight": "ffn_norm.weight",
	"in_proj.weight": "ssm_in.weight", "conv1d.weight": "ssm_conv1d.weight", "conv1d.bias": "ssm_conv1d.bias", "x_proj.weight": "ssm_x.weight",
	"dt_proj.weight": "ssm_dt.weight", "dt_proj.bias": "ssm_dt.bias", "dt_bias": "ssm_dt.bias", "A_log": "ssm_a", ".D": "ssm_d",
	"mixer.norm.weight": "ssm_norm.weight", "mamba.norm.weight": "ssm_norm.weight", "out_proj.weight": "ssm_out.weight",
	"dt_layernorm.weight": "ssm_dt_norm.weight", "b_layernorm.weight": "ssm_b_norm.weight", "c_layernorm.weight": "ssm_c_norm.weight",
	"q_proj.weight": "attn_q.weight", "k_proj.weight": "attn_k.weight", "v_proj.weight": "attn_v.weight", "o_proj.weight": "attn_output.weight",
	"feed_forward.gate_proj.weight": "ffn_gate.weight", "feed_forward.up_proj.weight": "ffn_up.weight", "feed_forward.down_proj.weight": "ffn_down.weight",
	"shared_mlp.output_linear.weight": "ffn_down.weight", ".post_attention_layernorm.weight": "ffn_norm.weight",
	"feed_forward.router.weight": "ffn_gate_inp.weight",
}

var statesConversions = map[string]statesConversion{
	"hf-more/mamba": {arch: "mamba", config: mambaKeys},
	"hf-more/falcon-mamba": {arch: "mamba", config: func(hub func(string) float64) map[string]any {
		c := mambaKeys(hub)
		c["ssm.dt_b_c_rms"] = true
		return c
	}},
	"hf/mamba2": {arch: "mamba2", config: func(hub func(string) float64) map[string]any {
		return map[string]any{
			"attention.head_count": 0, "feed_forward_length": 0, "context_length": 1 << 20, "attention.layer_norm_rms_epsilon": hub("layer_norm_epsilon"),
			"ssm.inner_size": int(2 * hub("hidden_size")), "ssm.state_size": int(hub("state_size")), "ssm.conv_kernel": int(hub("conv_kernel")),
			"ssm.time_step_rank": int(hub("num_heads")), "ssm.group_count": int(hub("n_groups")),
		}
	}},
	"hf-more/falcon-h1": {arch: "falcon-h1", config: func(hub func(string) float64) map[string]any {
		c := hybridKeys(hub)
		c["attention.head_count_kv"] = int(hub("num_key_value_heads"))
		return c
	}, factor: func(name string, row int) float64 {
		const inner, group = 128, 16
		switch name {
		case "token_embd.weight":
			return 3
		case "output.weight":
			return 0.5
		case "attn_q.weight", "attn_v.weight":
			return 1.1
		case "attn_k.weight":
			return 1.1 * 0.6
		case "attn_output.weight":
			return 0.9
		case "ffn_gate.weight":
			return 0.8
		case "ffn_down.weight":
			return 1.2
		case "ssm_out.weight":
			return 0.8
		case "ssm_in.weight":
			for i, end := range []int{inner, 2 * inner, 2*inner + group, 2*inner + 2*group, 1 << 20} {
				if row < end {
					return 1.2 * []float64{0.9, 1.1, 0.8, 1.2, 0.7}[i]
				}
			}
		}
		return 1
	}},
	"hf-more/jamba": {arch: "jamba", config: func(hub func(string) float64) map[string]any {
		return map[string]any{
			"context_length": 512, "feed_forward_length": int(hub("intermediate_size")), "attention.layer_norm_rms_epsilon": hub("rms_norm_eps"),
			"attention.head_count": int(hub("num_attention_heads")), "attention.head_count_kv": []int32{0, 0, 2, 0},
			"expert_count": int(hub("num_experts")), "expert_used_count": int(hub("num_experts_per_tok")),
			"ssm.inner_size": int(2 * hub("hidden_size")), "ssm.state_size": int(hub("mamba_d_state")), "ssm.conv_kernel": int(hub("mamba_d_conv")),
			"ssm.time_step_rank": int(hub("mamba_dt_rank")),
		}
	}},
}

func mambaKeys(hub func(string) float64) map[string]any {
	return map[string]any{
		"attention.head_count": 0, "feed_forward_length": 0, "context_length": 1 << 20, "attention.layer_norm_rms_epsilon": hub("layer_norm_epsilon"),
		"ssm.inner_size": int(2 * hub("hidden_size")), "ssm.state_size": int(hub("state_size")), "ssm.conv_kernel": int(hub("conv_kernel")),
		"ssm.time_step_rank": int(hub("time_step_rank")),
	}
}

func hybridKeys(hub func(string) float64) map[string]any {
	return map[string]any{
		"context_length": 512, "feed_forward_length": int(hub("intermediate_size")), "attention.layer_norm_rms_epsilon": hub("rms_norm_eps"),
		"attention.head_count": int(hub("num_attention_heads")), "rope.freq_base": 10000.0,
		"ssm.inner_size": int(2 * hub("hidden_size")), "ssm.state_size": int(hub("mamba_d_state")), "ssm.conv_kernel": int(hub("mamba_d_conv")),
		"ssm.time_step_rank": int(hub("mamba_n_heads")), "ssm.group_count": int(hub("mamba_n_groups")),
	}
}

// A checkpoint with states and its GGUF file, as llama.cpp's converters write it, compute the same:
// logarithms of decays become decays, convolutions lose a dimension, and multipliers are in the
// weights.
func TestConvertedStates(t *testing.T) {
	for name, conv := range statesConversions {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(conformance(t), name)
			m, err := buildFile(t, conv.write(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			agree(t, cpu.New(2), m, expected(t, filepath.Join(dir, "expected.safetensors")), inFloats.limits, inFloats.bound)
		})
	}
}

var (
	layerOfName  = regexp.MustCompile(`layers\.(\d+)(\..*)`)
	expertOfName = regexp.MustCompile(`^\.feed_forward\.experts\.(\d+)\.(gate|up|down)_proj\.weight$`)
)

func (conv *statesConversion) write(t *testing.T, folder string) string {
	t.Helper()
	f, err := modelfile.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	hub := func(key string) float64 {
		v, ok := f.Meta().Float(key)
		if n, whole := f.Meta().Int(key); whole {
			v, ok = float64(n), true
		}
		if !ok {
			t.Fatalf("config.json has no %s", key)
		}
		return v
	}
	var list []*tensor.Tensor
	experts := map[string][]*tensor.Tensor{}
	for _, w := range f.Tensors() {
		prefix, rest := "", strings.TrimPrefix(strings.TrimPrefix(w.Name, "model."), "backbone.")
		if part := layerOfName.FindStringSubmatch(w.Name); part != nil {
			prefix, rest = "blk."+part[1]+".", part[2]
		}
		if part := expertOfName.FindStringSubmatch(rest); part != nil {
			key := fmt.Sprintf("%sffn_%s_exps.weight", prefix, part[2])
			experts[key] = append(experts[key], conv.converted(t, w, key, "")) // the file has them in order
			continue
		}
		short, longest := "", ""
		for end, name := range statesNames {
			if (rest == end || prefix != "" && strings.HasSuffix(rest, end)) && len(end) > len(longest) {
				short, longest = name, end
			}
		}
		if short == "" {
			t.Fatalf("what is %s?", w.Name)
		}
		list = append(list, conv.converted(t, w, prefix+short, short))
	}
	for name, all := range experts {
		stack := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: append([]int{len(all)}, all[0].Shape...)}
		for _, w := range all {
			stack.Data = append(stack.Data, w.Data...)
		}
		list = append(list, stack)
	}
	config := conv.config(hub)
	config["general.architecture"], config["block_count"], config["embedding_length"] = conv.arch, int(hub("num_hidden_layers")), int(hub("hidden_size"))
	var data bytes.Buffer
	if err := modelfile.WriteGGUF(&data, ggufMeta(config), list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// converted returns w in F32 as the converter writes it.
func (conv *statesConversion) converted(t *testing.T, w *tensor.Tensor, name, short string) *tensor.Tensor {
	t.Helper()
	values, err := w.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	to := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: slices.Clone(w.Shape)}
	for i, v := range values {
		x := float64(v)
		if short == "ssm_a" {
			x = -math.Exp(x)
		}
		if conv.factor != nil {
			x *= conv.factor(short, i/w.Cols())
		}
		to.Data = binary.LittleEndian.AppendUint32(to.Data, math.Float32bits(float32(x)))
	}
	switch {
	case short == "ssm_conv1d.weight":
		to.Shape = []int{w.Shape[0], w.Shape[2]}
	case conv.arch != "mamba" && (short == "ssm_a" || short == "ssm_d") && len(w.Shape) == 1 && conv.arch != "jamba":
		to.Shape = []int{w.Shape[0], 1}
	case short == "ssm_norm.weight":
		to.Shape = []int{1, w.Shape[0]}
	}
	return to
}

// What the layers of states do not support is refused by name, and numbers that do not fit are
// errors.
func TestStatesErrors(t *testing.T) {
	for _, c := range []struct {
		plan   string
		change map[string]any
		says   string
	}{
		{"mamba", map[string]any{"expand": 3}, "backbone.layers.0.mixer.in_proj.weight has shape [64 16], want 96 rows"},
		{"mamba", map[string]any{"conv_kernel": 3}, "conv1d.weight has shape [32 4], want [32 3]"},
		{"mamba", map[string]any{"time_step_rank": "some"}, "time_step_rank is of type string, want one integer"},
		{"mamba2", map[string]any{"head_dim": 16}, "num_heads is 4 and head_dim is 16"},
		{"mamba2", map[string]any{"n_groups": 3}, "in_proj.weight has shape [84 16], want 92 rows"},
		{"mamba2", map[string]any{"time_step_limit": []any{0.5, 0.1}}, "time_step_limit is [0.5 0.1]; want two numbers in ascending order"},
		{"mamba2", map[string]any{"time_step_limit": "wide"}, "time_step_limit is []; want two numbers"},
		{"jamba", map[string]any{"sliding_window": 64}, "sliding_window is 64; Jamba's attention is supported without a window"},
		{"jamba-gguf", map[string]any{"attention.head_count_kv": []int32{0}}, "head_count_kv has 1 numbers for 2 layers"},
		{"granite-hybrid", map[string]any{"layer_types": []any{"mamba", "conv"}}, `layer_types[1] is "conv"`},
		{"nemotron-h", map[string]any{"hybrid_override_pattern": "MX"}, `hybrid_override_pattern has 'X' at 1`},
		{"nemotron-h", map[string]any{"hybrid_override_pattern": ""}, "layers_block_type has 0 layers"},
		{"nemotron-h", map[string]any{"mamba_hidden_act": "gelu"}, `mamba_hidden_act is "gelu"`},
		{"nemotron-h-latent", map[string]any{"mlp_hidden_act": "silu"}, "experts are supported with relu2"},
		{"nemotron-h-latent", map[string]any{"layers_block_type": []any{"full_attention", "rwkv"}}, `layers_block_type[1] is "rwkv"`},
		{"zamba2", map[string]any{"use_long_context": true}, "use_long_context is true; supported is false"},
		{"zamba2", map[string]any{"layers_block_type": []any{"hybrid"}}, "layers_block_type names 1 layers of 2"},
		{"falcon-h1", map[string]any{"ssm_multipliers": []any{1.0}}, "ssm_multipliers: want a list of 5 numbers"},
	} {
		_, err := buildFile(t, goldenModel(t, c.plan).with(c.change, nil).write(t))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s with %v: error %v, want %q", c.plan, c.change, err, c.says)
		}
	}
}

// Configurations that mean the same give the same program.
func TestStatesSpellings(t *testing.T) {
	infinity := map[string]any{"__float__": "Infinity"}
	for _, c := range []struct {
		plan   string
		change map[string]any
	}{
		{"nemotron-h", map[string]any{"head_dim": nil, "attention_head_dim": 8}},
		{"nemotron-h", map[string]any{"hybrid_override_pattern": nil, "layers_block_type": []any{"mamba", "mlp"}}},
		{"nemotron-h", map[string]any{"hybrid_override_pattern": nil, "layers_block_type": []any{"linear_attention", "mlp"}, "num_hidden_layers": nil}},
		{"bamba", map[string]any{"time_step_limit": []any{0, infinity}}},
		{"bamba", map[string]any{"mamba_d_head": 8, "rope_theta": nil, "rope_parameters": map[string]any{"rope_theta": 10000.0, "partial_rotary_factor": 0.5}}},
		{"granite-hybrid-dense", map[string]any{"layer_types": []any{"mamba", "attention"}}},
		{"mamba", map[string]any{"time_step_rank": "auto"}},
		{"mamba", map[string]any{"time_step_rank": 1, "num_attention_heads": 4}},
	} {
		m, err := buildFile(t, goldenModel(t, c.plan).with(c.change, nil).write(t))
		if err != nil {
			t.Errorf("%s with %v: %v", c.plan, c.change, err)
			continue
		}
		sameAsGolden(t, c.plan, m)
	}
}
