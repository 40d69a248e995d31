package arch_test

import (
	"testing"

	"github.com/realizar/realizar/tensor"
)

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
			golden(t, name, m)
		})
	}
}
