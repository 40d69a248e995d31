package arch_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// kimiGGUFNames are the names of llama.cpp's converter for Kimi Linear.
var kimiGGUFNames = combined(latentGGUFNames, map[string]string{
	"self_attn.q_conv1d": "ssm_conv1d_q", "self_attn.k_conv1d": "ssm_conv1d_k", "self_attn.v_conv1d": "ssm_conv1d_v",
	"self_attn.f_a_proj": "ssm_f_a", "self_attn.f_b_proj": "ssm_f_b", "self_attn.g_a_proj": "ssm_g_a", "self_attn.g_b_proj": "ssm_g_b",
	"self_attn.b_proj": "ssm_beta", "self_attn.A_log": "ssm_a", "self_attn.dt_bias": "ssm_dt.bias", "self_attn.o_norm": "ssm_norm",
	"block_sparse_moe.gate": "ffn_gate_inp", "block_sparse_moe.gate.e_score_correction_bias": "exp_probs_b.bias",
	"block_sparse_moe.shared_experts.gate_proj": "ffn_gate_shexp", "block_sparse_moe.shared_experts.up_proj": "ffn_up_shexp", "block_sparse_moe.shared_experts.down_proj": "ffn_down_shexp",
})

// A checkpoint with both kinds of layer and its GGUF file compute the same.
func TestConvertedKimiLinear(t *testing.T) {
	const prefix = "model.layers.1.self_attn."
	folder := goldenModel(t, "kimi-linear").with(map[string]any{"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}, map[string][]int{
		prefix + "q_proj.weight": {96, 16}, prefix + "kv_a_proj_with_mqa.weight": {40, 16}, prefix + "kv_a_layernorm.weight": {32},
		prefix + "kv_b_proj.weight": {128, 32}, prefix + "o_proj.weight": {16, 64},
	}).write(t)
	conv := conversion{
		arch: "kimi-linear", names: kimiGGUFNames,
		config: map[string]any{
			"context_length": 64, "attention.head_count_kv": []int32{0, 1}, "attention.kv_lora_rank": 32, "rope.dimension_count": 8,
			"attention.key_length": 40, "attention.value_length": 32, "attention.key_length_mla": 24, "attention.value_length_mla": 16,
			"kda.head_dim": 4, "ssm.conv_kernel": 4, "leading_dense_block_count": 1, "expert_count": 4, "expert_used_count": 2,
			"expert_feed_forward_length": 8, "expert_shared_count": 1, "expert_gating_func": 2, "expert_weights_scale": 2.446,
		},
		change: func(t *testing.T, tensors map[string]*tensor.Tensor) {
			stackExperts(t, tensors)
			splitLatent(t, tensors)
			rates, err := tensors["blk.0.ssm_a"].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range rates {
				rates[i] = float32(-math.Exp(float64(v)))
			}
			tensors["blk.0.ssm_a"] = floatVector(rates)
			tensors["blk.0.ssm_a"].Shape = []int{1, 1, 4, 1}
			for _, part := range []string{"q", "k", "v"} {
				w := *tensors["blk.0.ssm_conv1d_"+part+".weight"]
				w.Shape = []int{1, 16, 1, 4}
				tensors["blk.0.ssm_conv1d_"+part+".weight"] = &w
			}
		},
	}
	var logits [][][]float32
	for _, path := range []string{folder, conv.write(t, folder)} {
		m, err := buildFile(t, path)
		if err != nil {
			t.Fatal(err)
		}
		logits = append(logits, logitsOf(t, cpu.New(2), m.Program, []int32{5, 3, 31, 17, 4}, plan.Limits{Cache: tensor.F32}))
	}
	if d := relative(logits[0], logits[1]); !(d < 1e-6) {
		t.Errorf("relative error %.3g", d)
	}
}

// Delta nets beside latent attention have the same bits however a prompt is cut.
func TestKimiLinearInSteps(t *testing.T) {
	m, err := buildFile(t, goldenModel(t, "kimi-linear").write(t))
	if err != nil {
		t.Fatal(err)
	}
	var ids []int32
	for i := range 140 {
		ids = append(ids, int32(i*i*7%32))
	}
	var want [][]float32
	for _, size := range []int{140, 1, 7, 63, 64, 65} {
		r, err := plantest.NewRunner(cpu.New(2), m.Program, plantest.LimitsFor(m.Program, 140, 1, 140, 16, plan.Limits{Cache: tensor.F16}))
		if err != nil {
			t.Fatal(err)
		}
		s := r.Add(ids, size)
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = s.Logits
		}
		same(t, fmt.Sprintf("steps of %d", size), s.Logits, want)
		if err := r.Exe.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Latent attention without positions computes what the formulas say: no element is rotated, and
// scores are scaled by all elements of a query.
func TestLatentWithoutPositions(t *testing.T) {
	const hidden, heads, rank, plain, shared, value = 16, 4, 8, 4, 2, 6
	const layer = "model.layers.0."
	m := tiny{config: maps.Clone(goldenModel(t, "kimi-linear").config), tensors: map[string][]int{
		"model.embed_tokens.weight": {32, hidden}, "model.norm.weight": {hidden}, "lm_head.weight": {32, hidden},
		layer + "input_layernorm.weight": {hidden}, layer + "post_attention_layernorm.weight": {hidden},
		layer + "self_attn.q_proj.weight": {heads * (plain + shared), hidden}, layer + "self_attn.kv_a_proj_with_mqa.weight": {rank + shared, hidden},
		layer + "self_attn.kv_a_layernorm.weight": {rank}, layer + "self_attn.kv_b_proj.weight": {heads * (plain + value), rank}, layer + "self_attn.o_proj.weight": {hidden, heads * value},
		layer + "mlp.gate_proj.weight": {24, hidden}, layer + "mlp.up_proj.weight": {24, hidden}, layer + "mlp.down_proj.weight": {hidden, 24},
	}}
	m.config["num_hidden_layers"], m.config["v_head_dim"] = 1, value
	m.config["linear_attn_config"] = map[string]any{"full_attn_layers": []int{1}, "kda_layers": []int{}, "head_dim": 4, "num_heads": 4, "short_conv_kernel_size": 4}
	folder := m.write(t)
	built, err := buildFile(t, folder)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modelfile.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	floats := func(name string) []float64 {
		w, _ := f.Tensor(name + ".weight")
		values, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		var list []float64
		for _, v := range values {
			list = append(list, float64(v))
		}
		return list
	}
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	times := func(name string, x []float64) (y []float64) {
		for row := range slices.Chunk(floats(name), len(x)) {
			y = append(y, dot(row, x))
		}
		return y
	}
	normed := func(name string, x []float64, eps float64) (y []float64) {
		by := 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps)
		for i, w := range floats(name) {
			y = append(y, x[i]*by*w)
		}
		return y
	}
	plus := func(x, y []float64) (sum []float64) {
		for i := range x {
			sum = append(sum, x[i]+y[i])
		}
		return sum
	}
	list := []int32{5, 3, 31, 17, 4, 5, 9}
	var keys, values [][]float64 // of all heads, by token
	var want [][]float32
	for _, id := range list {
		x := floats("model.embed_tokens")[id*hidden:][:hidden]
		h := normed(layer+"input_layernorm", x, 1e-5)
		q, a := times(layer+"self_attn.q_proj", h), times(layer+"self_attn.kv_a_proj_with_mqa", h)
		var k, v, out []float64
		for part := range slices.Chunk(times(layer+"self_attn.kv_b_proj", normed(layer+"self_attn.kv_a_layernorm", a[:rank], 1e-6)), plain+value) {
			k, v = append(append(k, part[:plain]...), a[rank:]...), append(v, part[plain:]...)
		}
		keys, values = append(keys, k), append(values, v)
		const size = plain + shared
		for n := range heads {
			sum, mean := 0.0, make([]float64, value)
			for i := range keys {
				by := math.Exp(dot(q[n*size:][:size], keys[i][n*size:][:size]) / math.Sqrt(size))
				sum += by
				for j := range mean {
					mean[j] += by * values[i][n*value+j]
				}
			}
			for _, y := range mean {
				out = append(out, y/sum)
			}
		}
		x = plus(x, times(layer+"self_attn.o_proj", out))
		h = normed(layer+"post_attention_layernorm", x, 1e-5)
		gate, up := times(layer+"mlp.gate_proj", h), times(layer+"mlp.up_proj", h)
		for i, g := range gate {
			up[i] *= g / (1 + math.Exp(-g))
		}
		x = plus(x, times(layer+"mlp.down_proj", up))
		var row []float32
		for _, y := range times("lm_head", normed("model.norm", x, 1e-5)) {
			row = append(row, float32(y))
		}
		want = append(want, row)
	}
	got := logitsOf(t, cpu.New(2), built.Program, list, plan.Limits{Cache: tensor.F32})
	if d := relative(got, want); !(d < 1e-5) {
		t.Errorf("relative error %.3g", d)
	}
	if strings.Contains(built.Program.String(), "rope") {
		t.Error("the program rotates")
	}
}
