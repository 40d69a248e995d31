package arch_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A conversion says how llama.cpp's converter turns a checkpoint into GGUF, for models without a
// GGUF file in the conformance data.
type conversion struct {
	arch     string
	config   map[string]any    // keys besides the common ones
	names    map[string]string // names of tensors that are not the usual ones
	plusOne  bool              // GGUF stores the weights of norms plus one
	permuted bool              // GGUF permutes the rows of queries and keys
	vectors  map[string][]float32
}

// usualNames are the names that most converters give to the tensors of a layer.
var usualNames = map[string]string{
	"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output",
	"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}

var (
	aroundNames = map[string]string{
		"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
	}
	glmNames = map[string]string{"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}
)

var conversions = map[string]conversion{
	"gemma2": {arch: "gemma2", names: aroundNames, plusOne: true, config: map[string]any{
		"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "attention.sliding_window": 8}},
	"gemma3": {arch: "gemma3", names: aroundNames, plusOne: true, config: map[string]any{"attention.sliding_window": 8, "rope.freq_base": 1e6}},
	"olmo2":  {arch: "olmo2", names: aroundNames},
	"olmo3": {arch: "olmo2", names: aroundNames, config: map[string]any{
		"attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false}, "rope.freq_base": 500000.0}},
	"cohere2": {arch: "cohere2", config: map[string]any{"attention.layer_norm_epsilon": 1e-5, "attention.sliding_window": 8, "logit_scale": 0.25}},
	"smollm3": {arch: "smollm3", permuted: true, config: map[string]any{"rope.freq_base": 2e6}},
	"glm4":    {arch: "glm4", names: glmNames, config: map[string]any{"rope.dimension_count": 16}},
	"exaone4": {arch: "exaone4", names: aroundNames, config: map[string]any{
		"attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false}}},
	"hunyuan": {arch: "hunyuan-dense"},
	"phi3":    {arch: "phi3", config: map[string]any{"attention.sliding_window": 0, "rope.scaling.original_context_length": 4096}},
	"phi3-longrope": {arch: "phi3", config: map[string]any{"attention.sliding_window": 0, "rope.scaling.original_context_length": 16, "rope.scaling.attn_factor": math.Sqrt2},
		vectors: map[string][]float32{
			"rope_factors_short.weight": {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7}, "rope_factors_long.weight": {1.5, 1.8, 2.1, 2.4, 2.7, 3, 3.3, 3.6}}},
}

// A checkpoint and its GGUF file compute the same.
func TestConvertedGGUF(t *testing.T) {
	dir := filepath.Join(conformance(t), "hf")
	for name, conv := range conversions {
		t.Run(name, func(t *testing.T) {
			m, err := buildFile(t, conv.write(t, filepath.Join(dir, name)))
			if err != nil {
				t.Fatal(err)
			}
			agree(t, cpu.New(2), m, expected(t, filepath.Join(dir, name, "expected.safetensors")), inFloats.limits, inFloats.bound)
		})
	}
}

var layerName = regexp.MustCompile(`^(?:model\.layers\.(\d+)\.)?(.*)(\.weight|\.bias)$`)

func (conv *conversion) write(t *testing.T, folder string) string {
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
	tensors := map[string]*tensor.Tensor{}
	for _, w := range f.Tensors() {
		part := layerName.FindStringSubmatch(w.Name)
		short, ok := conv.names[part[2]]
		if !ok {
			short = usualNames[part[2]]
		}
		if short == "" {
			t.Fatalf("what is %s?", w.Name)
		}
		if part[1] != "" {
			short = "blk." + part[1] + "." + short
		}
		if conv.plusOne && strings.HasSuffix(short, "_norm") {
			w = plusOne(t, w)
		}
		tensors[short+part[3]] = w
	}
	head := number("hidden_size") / number("num_attention_heads")
	if n := number("head_dim"); n > 0 {
		head = n
	}
	eps, _ := f.Meta().Float("rms_norm_eps")
	config := map[string]any{
		"general.architecture": conv.arch, "block_count": number("num_hidden_layers"), "embedding_length": number("hidden_size"), "context_length": number("max_position_embeddings"),
		"feed_forward_length": number("intermediate_size"), "attention.head_count": number("num_attention_heads"), "attention.head_count_kv": number("num_key_value_heads"),
		"attention.key_length": head, "attention.value_length": head, "attention.layer_norm_rms_epsilon": eps, "rope.freq_base": 10000.0,
	}
	maps.Copy(config, conv.config)
	for name, values := range conv.vectors {
		tensors[name] = floatVector(values)
	}
	var list []*tensor.Tensor
	for name := range tensors {
		if conv.permuted && strings.Contains(name, "attn_q.") {
			permute(tensors, name, number("num_attention_heads"))
		}
		if conv.permuted && strings.Contains(name, "attn_k.") {
			permute(tensors, name, number("num_key_value_heads"))
		}
		w := *tensors[name]
		w.Name = name
		list = append(list, &w)
	}
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

func plusOne(t *testing.T, w *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	values, err := w.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		values[i]++
	}
	return floatVector(values)
}

func floatVector(values []float32) *tensor.Tensor {
	w := &tensor.Tensor{DType: tensor.F32, Shape: []int{len(values)}}
	for _, v := range values {
		w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(v))
	}
	return w
}
