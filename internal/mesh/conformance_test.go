package mesh_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// Models of the architectures that people divide have the bits of one device, and are divided.
func TestConformance(t *testing.T) {
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	for _, path := range []string{
		"hf/llama", "hf/qwen3", "hf/gemma3", "hf/gpt-oss", "hf/qwen3-moe", "hf/deepseek-v3", "hf/qwen3-next", "gguf/llama.gguf", "gguf/qwen3-moe.gguf",
	} {
		t.Run(path, func(t *testing.T) {
			m := opened(t, filepath.Join(dir, path))
			parts, err := mesh.Partition(m.Program, 2, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := parts[0].Program.Nodes; !slices.ContainsFunc(n, func(n plan.Node) bool { return n.Op == plan.Gather }) {
				t.Error("nothing is divided")
			}
			for _, base := range []plan.Limits{{Cache: tensor.F16, Activations: cpu.Rounds}, {Cache: tensor.Q8_0, Activations: cpu.Rounds}} {
				if m.Program.MisfitHead(base.Cache) > 0 {
					continue
				}
				want := plantest.LogitsOfTwo(t, cpu.New(1), m.Program, base, lengths)
				for _, parts := range []int{2, 4, 8} {
					t.Run(fmt.Sprintf("%v, %d parts", base.Cache, parts), func(t *testing.T) {
						plantest.SameAsOne(t, plantest.LogitsOfTwo(t, mesh.New(cpu.New(1), parts, mesh.ByTensor), m.Program, base, lengths), want)
					})
				}
			}
		})
	}
}

// All models of the conformance data that are one part of a program have the bits of one device in
// parts by layer.
func TestConformanceByLayer(t *testing.T) {
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	var all []string
	for _, pattern := range []string{"hf/*/config.json", "hf-more/*/config.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 80 {
		t.Errorf("%d models, want 80 or more", len(all))
	}
	base := plan.Limits{Cache: tensor.F16, Activations: cpu.Rounds}
	for _, path := range all {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			m := opened(t, filepath.Dir(path))
			if m.Program.Whole {
				t.Skip("sequences have to be whole")
			}
			want := plantest.LogitsOfTwo(t, cpu.New(1), m.Program, base, lengths)
			b := cutting{mesh.New(cpu.New(1), 2, mesh.ByLayer), 4}
			plantest.SameAsOne(t, plantest.LogitsOfTwo(t, b, m.Program, base, lengths), want)
		})
	}
}

// opened returns the model at path.
func opened(t *testing.T, path string) *arch.Model {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	m, err := arch.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
