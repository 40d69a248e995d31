package arch_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// latentGGUFNames are the names of llama.cpp's converter for latent attention and its experts.
var latentGGUFNames = func() map[string]string {
	all := map[string]string{
		"self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
		"self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.kv_b_proj": "attn_kv_b",
		"mlp.gate": "ffn_gate_inp", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
	}
	for _, s := range []string{"gate", "up", "down"} {
		all["mlp.shared_experts."+s+"_proj"] = "ffn_" + s + "_shexp"
		for e := range 8 {
			all[fmt.Sprintf("mlp.experts.%d.%s_proj", e, s)] = fmt.Sprintf("ffn_%s.%d", s, e)
		}
	}
	return all
}()

// The keys of the conformance cases, as the older converter wrote them, and as it does since keys and
// values have tensors of their own.
var (
	unsplitKeys = map[string]any{
		"attention.key_length": 24, "attention.value_length": 16, "attention.kv_lora_rank": 32, "rope.dimension_count": 8,
		"expert_used_count": 2, "expert_feed_forward_length": 48, "expert_shared_count": 1, "leading_dense_block_count": 1,
	}
	splitKeys = map[string]any{
		"attention.key_length": 40, "attention.value_length": 32, "attention.key_length_mla": 24, "attention.value_length_mla": 16,
		"attention.head_count_kv": 1,
	}
	v2Keys = map[string]any{"expert_count": 4, "expert_weights_scale": 1.0}
	v3Keys = map[string]any{
		"attention.q_lora_rank": 48, "expert_count": 8, "expert_gating_func": 2, "expert_weights_norm": true, "expert_weights_scale": 2.5,
		"expert_group_count": 2, "expert_group_used_count": 1,
	}
)

func init() {
	keys := func(parts ...map[string]any) map[string]any {
		all := map[string]any{}
		for _, p := range parts {
			maps.Copy(all, p)
		}
		return all
	}
	for name, own := range map[string]map[string]any{"deepseek-v2": v2Keys, "deepseek-v3": v3Keys} {
		conversions[name] = conversion{arch: "deepseek2", names: latentGGUFNames, config: keys(unsplitKeys, own), change: stackExperts}
		conversions[name+", split"] = conversion{arch: "deepseek2", names: latentGGUFNames, config: keys(unsplitKeys, own, splitKeys), change: func(t *testing.T, tensors map[string]*tensor.Tensor) {
			stackExperts(t, tensors)
			splitLatent(t, tensors)
		}}
	}
}

// stackExperts joins the experts' weights of each kind.
func stackExperts(_ *testing.T, tensors map[string]*tensor.Tensor) {
	for _, kind := range []string{"gate", "up", "down"} {
		for layer := range 3 {
			var parts []string
			one := func(e int) string { return fmt.Sprintf("blk.%d.ffn_%s.%d.weight", layer, kind, e) }
			for e := 0; tensors[one(e)] != nil; e++ {
				parts = append(parts, one(e))
			}
			if len(parts) == 0 {
				continue
			}
			shape := tensors[parts[0]].Shape
			into := fmt.Sprintf("blk.%d.ffn_%s_exps.weight", layer, kind)
			fuse(tensors, into, parts...)
			tensors[into].Shape = []int{len(parts), shape[0], shape[1]}
		}
	}
}

// splitLatent splits the weights that compute keys and values from latent rows, by head, and
// transposes those of keys.
func splitLatent(t *testing.T, tensors map[string]*tensor.Tensor) {
	const heads, plain, value, rank = 4, 16, 16, 32
	for layer := range 3 {
		name := fmt.Sprintf("blk.%d.attn_kv_b.weight", layer)
		if tensors[name] == nil {
			continue
		}
		all, err := tensors[name].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		delete(tensors, name)
		var keys, values []float32
		for h := range heads {
			rows := all[h*(plain+value)*rank:][:(plain+value)*rank]
			for c := range rank {
				for r := range plain {
					keys = append(keys, rows[r*rank+c])
				}
			}
			values = append(values, rows[plain*rank:]...)
		}
		k, v := floatVector(keys), floatVector(values)
		k.Shape, v.Shape = []int{heads, rank, plain}, []int{heads, value, rank}
		tensors[fmt.Sprintf("blk.%d.attn_k_b.weight", layer)], tensors[fmt.Sprintf("blk.%d.attn_v_b.weight", layer)] = k, v
	}
}

// A weight in blocks from which keys and values are computed is transposed as float32: logits are
// those of the same numbers without blocks.
func TestLatentBlocks(t *testing.T) {
	var logits [][][]float32
	for _, inBlocks := range []bool{true, false} {
		conv := conversions["deepseek-v3"]
		conv.change = func(t *testing.T, tensors map[string]*tensor.Tensor) {
			stackExperts(t, tensors)
			for name, w := range tensors {
				if !strings.HasSuffix(name, "attn_kv_b.weight") {
					continue
				}
				values, err := w.Float32s()
				if err != nil {
					t.Fatal(err)
				}
				q := &tensor.Tensor{DType: tensor.Q8_0, Shape: w.Shape, Data: make([]byte, len(values)/32*34)}
				if err := tensor.Quantize(q.DType, q.Data, values); err != nil {
					t.Fatal(err)
				}
				if tensors[name] = q; !inBlocks {
					if values, err = q.Float32s(); err != nil {
						t.Fatal(err)
					}
					tensors[name] = floatVector(values)
					tensors[name].Shape = w.Shape
				}
			}
		}
		m, err := buildFile(t, conv.write(t, filepath.Join(conformance(t), "hf", "deepseek-v3")))
		if err != nil {
			t.Fatal(err)
		}
		blocks := 0
		for i := range m.Program.Nodes {
			for _, w := range m.Program.Nodes[i].Tensors() {
				if w.DType == tensor.Q8_0 {
					blocks++
				}
			}
		}
		if want := 3 * 4; inBlocks && blocks != want || !inBlocks && blocks != 0 { // values, by layer and head
			t.Fatalf("%d weights in blocks", blocks)
		}
		logits = append(logits, logitsOf(t, cpu.New(2), m.Program, []int32{5, 3, 200, 17, 4}, plan.Limits{Cache: tensor.F32}))
	}
	if d := relative(logits[0], logits[1]); !(d < 1e-6) {
		t.Errorf("relative error %.3g", d)
	}
}

// What latent attention does not do is refused by name.
func TestLatentErrors(t *testing.T) {
	v2, v3, longcat := goldenModel(t, "deepseek-v2"), goldenModel(t, "deepseek-v3"), goldenModel(t, "longcat-flash")
	set := func(m tiny, key string, value any) tiny { return m.with(map[string]any{key: value}, nil) }
	tinyErrors(t, []refusal{
		{"method", set(v2, "topk_method", "noaux_tc"), arch.ErrConfig, `topk_method is "noaux_tc"; supported are "greedy" and "group_limited_greedy"`},
		{"some layers", set(v3, "moe_layer_freq", 2), arch.ErrConfig, "moe_layer_freq is 2; supported is 1"},
		{"nothing plain", set(v3, "qk_nope_head_dim", 0), arch.ErrConfig, "qk_nope_head_dim is 0, want 1"},
		{"other rank", set(v3, "kv_lora_rank", 7), arch.ErrTensor, "kv_a_proj_with_mqa.weight has shape [10 16], want 9 rows for parts of [7 2]"},
		{"other heads", set(v3, "v_head_dim", 5), arch.ErrTensor, "kv_b_proj.weight has shape [32 8], want 4 heads of [9 8] by the configuration"},
		{"zeros", set(longcat, "zero_expert_type", "drop"), arch.ErrConfig, `zero_expert_type is "drop"; supported is "identity"`},
		{"unscaled", set(longcat, "mla_scale_q_lora", false), arch.ErrConfig, "mla_scale_q_lora is false; supported is true"},
		{"queries", set(longcat, "q_lora_rank", nil), arch.ErrTensor, "q_a_proj.weight"},
	})
}
