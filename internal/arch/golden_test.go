package arch_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden programs")

// An architecture is reviewed as the program that it becomes.
func TestPrograms(t *testing.T) {
	for name, change := range map[string]func(s *shape){
		"llama":            func(s *shape) { s.arch, s.ffn, s.dtypes = "llama", 64, []tensor.DType{tensor.F16, tensor.Q8_0} },
		"llama-fused-bias": func(s *shape) { s.arch, s.fusedQKV, s.fusedFFN, s.qkvBias, s.tied = "llama", true, true, true, true },
		"mistral":          func(s *shape) { s.arch, s.hub, s.window = "mistral", true, 8 },
		"qwen2":            func(s *shape) { s.arch, s.qkvBias = "qwen2", true },
		"qwen3":            func(s *shape) { s.arch, s.hub, s.qkNorm = "qwen3", true, true },
	} {
		t.Run(name, func(t *testing.T) {
			s := small("llama")
			change(&s)
			m, err := buildFile(t, newToy(s).write(t))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".plan")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, []byte(m.Program.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), m.Program.String()); d != "" {
				t.Errorf("the program differs from %s; if it should, run the test with -update\n%s", golden, d)
			}
		})
	}
}
