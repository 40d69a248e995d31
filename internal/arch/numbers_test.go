package arch_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/tensor"
)

// refuses checks that the file's error is of kind is and contains all parts.
func refuses(t *testing.T, name, path string, is error, parts ...string) {
	t.Helper()
	_, err := buildFile(t, path)
	if !errors.Is(err, is) {
		t.Errorf("%s: %v, want an error of kind %q", name, err, is)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error %q does not say %q", name, err, part)
		}
	}
}

// GGUF numbers that must be positive are refused by key and value if they are not.
func TestNumbersGGUF(t *testing.T) {
	for _, c := range []struct {
		key, kind string
		optional  bool // 0 means none
	}{
		{key: "attention.layer_norm_rms_epsilon"}, {key: "rope.freq_base"},
		{key: "rope.scaling.factor", kind: "linear", optional: true}, {key: "rope.scale_linear", optional: true},
		{key: "rope.scaling.attn_factor", kind: "yarn", optional: true},
		{key: "rope.scaling.yarn_beta_fast", kind: "yarn", optional: true}, {key: "rope.scaling.yarn_beta_slow", kind: "yarn", optional: true},
	} {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 2e30} {
			if v == 0 && c.optional {
				continue
			}
			s := small("llama")
			s.config = map[string]any{"llama." + c.key: v}
			if c.kind != "" {
				s.config["llama.rope.scaling.type"] = c.kind
			}
			refuses(t, fmt.Sprint(c.key, " of ", v), newToy(s).write(t), arch.ErrConfig, fmt.Sprintf("llama.%s is %v, want a positive number", c.key, v))
		}
	}
	for _, v := range []float32{0, -1, float32(math.Inf(1)), float32(math.NaN())} {
		for _, name := range []string{"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"} {
			s := small("llama")
			s.spoil = func(w map[string]*tensor.Tensor) {
				x := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: []int{4}}
				for _, f := range []float32{1, 1, v, 1} {
					bits := math.Float32bits(f)
					x.Data = append(x.Data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
				}
				w[name] = x
			}
			refuses(t, fmt.Sprint(name, " with ", v), newToy(s).write(t), arch.ErrTensor, fmt.Sprintf("%s: factor 2 is %v, want a positive number", name, v))
		}
	}
}

// So are those of config.json, which may contain NaN and infinities as Python writes them.
func TestNumbersHub(t *testing.T) {
	yarn := map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
	llama3 := map[string]any{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
	list := []any{1.0, 1.0, 1.0, 1.0}
	longrope := map[string]any{"rope_type": "longrope", "factor": 4.0, "short_factor": list, "long_factor": list, "original_max_position_embeddings": 32}
	for _, c := range []struct {
		key      string
		rope     map[string]any
		optional bool
	}{
		{key: "rms_norm_eps"},
		{key: "rope_theta", rope: map[string]any{"rope_type": "default"}}, {key: "partial_rotary_factor", rope: map[string]any{"rope_type": "default"}},
		{key: "factor", rope: map[string]any{"rope_type": "linear"}, optional: true}, {key: "factor", rope: map[string]any{"rope_type": "dynamic"}, optional: true},
		{key: "factor", rope: llama3, optional: true}, {key: "low_freq_factor", rope: llama3}, {key: "high_freq_factor", rope: llama3},
		{key: "factor", rope: yarn, optional: true}, {key: "attention_factor", rope: yarn, optional: true},
		{key: "mscale", rope: yarn, optional: true}, {key: "mscale_all_dim", rope: yarn, optional: true},
		{key: "beta_fast", rope: yarn, optional: true}, {key: "beta_slow", rope: yarn, optional: true},
		{key: "attention_factor", rope: longrope, optional: true}, {key: "short_factor[2]", rope: longrope}, {key: "long_factor[2]", rope: longrope},
	} {
		for text, v := range map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "-1": -1, "0": 0, "2e30": 2e30} {
			if v == 0 && c.optional {
				continue
			}
			s := small("llama")
			s.hub = true
			key := c.key
			if c.rope == nil {
				s.config = map[string]any{key: "the number"}
			} else {
				rope := maps.Clone(c.rope)
				if short, ok := strings.CutSuffix(key, "[2]"); ok {
					rope[short] = []any{1.0, 1.0, "the number", 1.0}
				} else {
					rope[key] = "the number"
				}
				s.config = map[string]any{"rope_parameters": rope}
				key = "rope_parameters." + key
			}
			path := newToy(s).write(t)
			name := filepath.Join(path, "config.json")
			config, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, bytes.ReplaceAll(config, []byte(`"the number"`), []byte(text)), 0o644); err != nil {
				t.Fatal(err)
			}
			refuses(t, fmt.Sprint(key, " of ", v), path, arch.ErrConfig, fmt.Sprintf("%s is %v, want a positive number", key, v))
		}
	}
}

// Numbers that are only too large together are refused too.
func TestNumbersTogether(t *testing.T) {
	for name, c := range map[string]struct {
		rope map[string]any
		says string
	}{
		"a frequency":       {map[string]any{"rope_type": "linear", "rope_theta": 1e-40, "factor": 1e-20}, "rotate pair 1 by"},
		"a magnitude":       {map[string]any{"rope_type": "longrope", "factor": 4.0, "short_factor": []any{1.0, 1.0, 1.0, 1.0}, "long_factor": []any{1.0, 1.0, 1.0, 1.0}, "original_max_position_embeddings": 1}, "a magnitude of +Inf"},
		"bounds that cross": {map[string]any{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0}, "rope_parameters.low_freq_factor is 4, want at most the 1 of rope_parameters.high_freq_factor"},
		"a base of too few": {map[string]any{"rope_type": "yarn", "factor": 4.0, "rope_theta": 1.0}, "need a base above 1, have 1"},
	} {
		s := small("llama")
		s.hub, s.config = true, map[string]any{"rope_parameters": c.rope}
		refuses(t, name, newToy(s).write(t), arch.ErrConfig, c.says)
	}
}
