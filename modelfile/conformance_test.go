package modelfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

// conformanceFiles returns the paths that match a pattern in the folder of conformance data.
func conformanceFiles(t *testing.T, pattern string) []string {
	t.Helper()
	root := os.Getenv("REALIZAR_CONFORMANCE")
	if root == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, root, err)
	}
	return paths
}

// checkModel checks every tensor's values and the metadata that any model has.
func checkModel(t *testing.T, f *modelfile.File, key string) {
	t.Helper()
	if len(f.Tensors()) == 0 {
		t.Error("no tensors")
	}
	for _, x := range f.Tensors() {
		values, err := x.Float32s()
		if err != nil {
			t.Error(err)
		}
		for i, v := range values {
			if v != v {
				t.Errorf("tensor %s: element %d is NaN", x.Name, i)
				break
			}
		}
	}
	if v, ok := f.Meta().String(key); !ok || v == "" {
		t.Errorf("%s is %q, of type %q", key, v, f.Meta().Type(key))
	}
}

func TestConformanceHub(t *testing.T) {
	for _, path := range conformanceFiles(t, "hf/*/config.json") {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			f := open(t, dir)
			checkModel(t, f, "model_type")
			if _, ok := f.Asset("generation_config.json"); !ok {
				t.Error("generation_config.json is not read")
			}
			expected := open(t, filepath.Join(dir, "expected.safetensors"))
			for _, name := range []string{"input_ids", "logits"} {
				if _, ok := expected.Tensor(name); !ok {
					t.Errorf("expected.safetensors has no %s", name)
				}
			}
		})
	}
}

func TestConformanceGGUF(t *testing.T) {
	paths := append(conformanceFiles(t, "gguf/*.gguf"), conformanceFiles(t, "gguf-quants/*.gguf")...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			checkModel(t, open(t, path), "general.architecture")
		})
	}
}

func TestConformanceVocabularies(t *testing.T) {
	for _, path := range conformanceFiles(t, "tokenizers/gguf/*.gguf") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := open(t, path)
			tokens, ok := f.Meta().Strings("tokenizer.ggml.tokens")
			if !ok || len(tokens) == 0 {
				t.Fatalf("tokenizer.ggml.tokens is of type %q", f.Meta().Type("tokenizer.ggml.tokens"))
			}
			if types, ok := f.Meta().Ints("tokenizer.ggml.token_type"); !ok || len(types) != len(tokens) {
				t.Errorf("%d token types for %d tokens", len(types), len(tokens))
			}
		})
	}
}

func BenchmarkOpenVocabulary(b *testing.B) {
	tokens := make([]string, 150_000)
	scores := make([]float32, len(tokens))
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	path := write(b, "vocabulary.gguf", ggufBytes(b, []modelfile.KeyValue{
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.scores", Value: scores},
	}, nil))
	b.ReportAllocs()
	for b.Loop() {
		f, err := modelfile.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
