package arch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// unscaled are the matrices in layers that checkpoints in FP8 leave as they are: routers, and tables.
var unscaled = regexp.MustCompile(`embed|lm_head|router|\.gate\.(weight|wg)|ple_|per_layer|conv|altup|laurel|ln_f`)

// Checkpoints in FP8 with scales by block compute what the numbers without scales do: blocks cross heads
// and fused weights, and some weights are transposed or in another order.
func TestFP8(t *testing.T) {
	cases := []string{
		"hf/deepseek-v3", "hf-more/deepseek-v32", "hf-more/minimax", "hf-more/mimo-v2-flash",
		"hf/minimax-m2", "hf-more/apertus", "hf-more/arcee", "hf-more/cohere2-moe", "hf-more/dots1", "hf-more/ernie4-5-moe", "hf-more/exaone-moe",
		"hf-more/gemma3n", "hf-more/gemma4", "hf-more/gemma4-moe", "hf-more/hunyuan-moe", "hf-more/llama4", "hf-more/ministral3", "hf-more/olmoe",
		"hf-more/phimoe", "hf-more/recurrent-gemma", "hf/seed-oss",
	}
	for _, name := range longtest.Cases(cases, cases[:4]) {
		t.Run(name, func(t *testing.T) { sameInFP8(t, filepath.Join(conformance(t), filepath.FromSlash(name))) })
	}
}

func sameInFP8(t *testing.T, folder string) {
	layout := modeltest.LayoutOf(t, "fp8 small blocks")
	f, err := modelfile.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	config := map[string]any{}
	data, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	var scaled, plain []*tensor.Tensor
	stored := 0
	for _, w := range f.Tensors() {
		values, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		x := floatVector(values)
		x.Name, x.Shape = w.Name, w.Shape
		if len(w.Shape) == 2 && w.Shape[1]%32 == 0 && !unscaled.MatchString(w.Name) {
			parts, decoded := layout.Store(w.Name, w.Shape[0], w.Shape[1], values)
			scaled, x = append(scaled, parts...), floatVector(decoded)
			x.Name, x.Shape = w.Name, w.Shape
			stored++
		} else {
			scaled = append(scaled, x)
		}
		plain = append(plain, x)
	}
	if stored < 8 {
		t.Fatalf("%d matrices are in FP8", stored)
	}
	logits := func(list []*tensor.Tensor) [][]float32 {
		m, err := buildFile(t, writeModel(t, config, list, false))
		if err != nil {
			t.Fatal(err)
		}
		return logitsOf(t, cpu.New(2), m.Program, []int32{5, 3, 200, 17, 4, 9}, plan.Limits{Cache: tensor.F32})
	}
	want := logits(plain)
	config["quantization_config"] = layout.Config
	if d := relative(logits(scaled), want); !(d < 1e-6) {
		t.Errorf("relative error %.3g", d)
	}
}
