package arch_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Both styles of config.json describe the same model: rope_parameters, as in transformers 5, and
// the keys of older versions.
func TestStylesOfConfig(t *testing.T) {
	for path := range models(t) {
		if strings.HasSuffix(path, ".gguf") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			config := map[string]any{}
			data, err := os.ReadFile(filepath.Join(path, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &config); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(config["model_type"].(string), "gemma4") {
				t.Skip("no version had older keys")
			}
			if _, newer := config["rope_parameters"]; newer {
				olderStyle(config)
			} else if _, older := config["rope_theta"]; older {
				newerStyle(config)
			} else {
				t.Skip("it has no rotary positions")
			}
			if data, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
				t.Fatal(err)
			}
			weights, err := os.ReadFile(filepath.Join(path, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), weights, 0o644); err != nil {
				t.Fatal(err)
			}
			want, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := buildFile(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Program.String(), got.Program.String()); d != "" {
				t.Errorf("%s\n%s", data, d)
			}
		})
	}
}

// olderStyle replaces rope_parameters by older keys.
func olderStyle(config map[string]any) {
	rope := config["rope_parameters"].(map[string]any)
	delete(config, "rope_parameters")
	if local, ok := rope["sliding_attention"].(map[string]any); ok {
		config["rope_local_base_freq"] = local["rope_theta"]
		rope = rope["full_attention"].(map[string]any)
	}
	for _, key := range []string{"rope_theta", "partial_rotary_factor"} {
		if value, ok := rope[key]; ok {
			config[key] = value
			delete(rope, key)
		}
	}
	config["rope_scaling"] = nil
	if rope["rope_type"] != "default" {
		config["rope_scaling"] = rope
	}
}

// newerStyle collects older keys in rope_parameters.
func newerStyle(config map[string]any) {
	rope := map[string]any{"rope_type": "default"}
	if scaling, ok := config["rope_scaling"].(map[string]any); ok {
		maps.Copy(rope, scaling)
	}
	for _, key := range []string{"rope_theta", "partial_rotary_factor"} {
		if value, ok := config[key]; ok {
			rope[key] = value
			delete(config, key)
		}
	}
	delete(config, "rope_scaling")
	config["rope_parameters"] = rope
}
