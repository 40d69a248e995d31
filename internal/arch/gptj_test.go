package arch_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// GPT-J with the rows of queries and keys permuted, and with zero biases, gives the same logits as
// Phi.
func TestGPTJIsPhi(t *testing.T) {
	const dim, turned = 8, 6
	f, m := built(t, goldenModel(t, "gptj-hub"))
	name := strings.NewReplacer(
		"transformer.wte", "model.embed_tokens", "transformer.ln_f", "model.final_layernorm", "transformer.h.", "model.layers.", "ln_1", "input_layernorm",
		"attn.out_proj", "self_attn.dense", "attn.", "self_attn.", "mlp.fc_in", "mlp.fc1", "mlp.fc_out", "mlp.fc2")
	tensors := map[string]*tensor.Tensor{}
	for _, w := range f.Tensors() {
		p := &tensor.Tensor{Name: name.Replace(w.Name), DType: w.DType, Shape: w.Shape, Data: w.Data}
		if strings.Contains(w.Name, "masked_bias") {
			continue
		}
		if strings.Contains(w.Name, "q_proj") || strings.Contains(w.Name, "k_proj") {
			p.Data = nil
			for r := range w.Rows() {
				from := r % dim
				if half := turned / 2; from < half {
					from = 2 * from
				} else if from < turned {
					from = 2*(from-half) + 1
				}
				p.Data = append(p.Data, w.Row(r/dim*dim+from)...)
			}
		}
		if strings.HasSuffix(p.Name, "_proj.weight") || strings.HasSuffix(p.Name, "dense.weight") {
			bias := strings.TrimSuffix(p.Name, "weight") + "bias"
			tensors[bias] = &tensor.Tensor{Name: bias, DType: tensor.F32, Shape: []int{w.Shape[0]}, Data: make([]byte, 4*w.Shape[0])}
		}
		tensors[p.Name] = p
	}
	phi := phiFolder(t, map[string]any{
		"architectures": []string{"PhiForCausalLM"}, "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 128,
		"max_position_embeddings": 64, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.75,
	}, tensors)
	other, err := buildFile(t, phi)
	if err != nil {
		t.Fatal(err)
	}
	got, want := logitsOfTiny(t, m), logitsOfTiny(t, other)
	if rel := relative(got, want); !(rel < 1e-6) {
		t.Errorf("relative error %.3g", rel)
	}
}

// phiFolder writes a checkpoint of Phi.
func phiFolder(t *testing.T, config map[string]any, tensors map[string]*tensor.Tensor) string {
	t.Helper()
	var list []*tensor.Tensor
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		list = append(list, tensors[name])
	}
	var weights bytes.Buffer
	if err := modelfile.WriteSafetensors(&weights, list); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"config.json": data, "model.safetensors": weights.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// logitsOfTiny returns the logits of some tokens.
func logitsOfTiny(t *testing.T, m *arch.Model) [][]float32 {
	t.Helper()
	r, err := plantest.NewRunner(cpu.New(2), m.Program, plantest.LimitsFor(m.Program, 8, 1, 64, 4, plan.Limits{Cache: tensor.F32}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	s := r.Add([]int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4}, 8)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	return s.Logits
}
