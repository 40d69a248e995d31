package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
)

// conformance returns the folder of data made by other programs.
func conformance(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	return dir
}

func floats(t *testing.T, path, name string) []float32 {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	x, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("%s has no tensor %s", path, name)
	}
	values, err := x.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestConformanceLogits(t *testing.T) {
	dir := conformance(t)
	for model, expected := range map[string]string{
		"hf/llama":                "hf/llama/expected.safetensors",
		"hf/mistral-swa":          "hf/mistral-swa/expected.safetensors",
		"gguf/llama.gguf":         "hf/llama/expected.safetensors",
		"gguf/qwen3.gguf":         "hf/qwen3/expected.safetensors",
		"gguf-quants/q4_k_m.gguf": "gguf-quants/q4_k_m.expected.safetensors",
	} {
		t.Run(model, func(t *testing.T) {
			expected := filepath.Join(dir, filepath.FromSlash(expected))
			var ids strings.Builder
			for _, id := range floats(t, expected, "input_ids") {
				fmt.Fprintf(&ids, "%d\n", int(id))
			}
			out := filepath.Join(t.TempDir(), "logits.safetensors")
			output(t, ids.String(), "logits", filepath.Join(dir, filepath.FromSlash(model)), "--ids", "-", "--out", out, "--activations", "f32")
			_, got := readLogits(t, out)
			want := floats(t, expected, "logits")
			if len(got) != len(want) {
				t.Fatalf("%d logits, want %d", len(got), len(want))
			}
			var diff, norm float64
			for i, w := range want {
				d := float64(got[i]) - float64(w)
				diff, norm = diff+d*d, norm+float64(w)*float64(w)
			}
			if e := math.Sqrt(diff / norm); !(e < 1e-4) {
				t.Errorf("relative error %.3g, want below 1e-4", e)
			}
		})
	}
}

func TestConformanceTokenize(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(conformance(t), "tokenizers", "hf", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no tokenizers: %v", err)
	}
	for _, dir := range folders {
		var config struct{ Model struct{ Type string } }
		readJSON(t, filepath.Join(dir, "tokenizer.json"), &config)
		if config.Model.Type != "BPE" {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var cases []struct {
				Text    string  `json:"text"`
				IDs     []int32 `json:"ids"`
				Special []int32 `json:"ids_special"`
				Decoded string  `json:"decoded"`
			}
			readJSON(t, filepath.Join(dir, "expected.json"), &cases)
			var texts, ids, special, decoded strings.Builder
			for _, c := range cases {
				texts.WriteString(jsonLine(t, c.Text))
				ids.WriteString(jsonLine(t, c.IDs))
				special.WriteString(jsonLine(t, c.Special))
				decoded.WriteString(jsonLine(t, c.Decoded))
			}
			file := filepath.Join(dir, "tokenizer.json")
			for _, test := range []struct {
				stdin, want string
				args        []string
			}{
				{texts.String(), ids.String(), []string{"tokenize", file, "--jsonl"}},
				{texts.String(), ids.String(), []string{"tokenize", dir, "--jsonl"}},
				{texts.String(), special.String(), []string{"tokenize", file, "--jsonl", "--special"}},
				{ids.String(), decoded.String(), []string{"tokenize", file, "--jsonl", "--decode"}},
			} {
				if diff := cmp.Diff(strings.Split(test.want, "\n"), strings.Split(output(t, test.stdin, test.args...), "\n")); diff != "" {
					t.Errorf("%q: (- want, + got)\n%s", test.args, diff)
				}
			}
		})
	}
}

func TestConformanceTokenizeVocabulary(t *testing.T) {
	dir := filepath.Join(conformance(t), "tokenizers", "gguf")
	for _, name := range []string{"gpt-2", "llama-spm", "starcoder", "deepseek-coder"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "ggml-vocab-"+name+".gguf")
			in, err := os.ReadFile(file + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			out, err := os.ReadFile(file + ".out")
			if err != nil {
				t.Fatal(err)
			}
			const separator = "\n__ggml_vocab_test__\n"
			var texts, want strings.Builder
			lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			for i, text := range strings.Split(strings.TrimSuffix(string(in), separator), separator) {
				texts.WriteString(jsonLine(t, text))
				want.WriteString("[" + strings.Join(strings.Fields(lines[i]), ",") + "]\n")
			}
			got := output(t, texts.String(), "tokenize", file, "--jsonl")
			if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(- want, + got)\n%s", diff)
			}
		})
	}
}

func TestConformanceTemplates(t *testing.T) {
	dir := filepath.Join(conformance(t), "templates")
	var cases map[string]json.RawMessage
	var expected map[string]map[string]struct {
		OK   bool   `json:"ok"`
		Text string `json:"text"`
	}
	readJSON(t, filepath.Join(dir, "cases.json"), &cases)
	readJSON(t, filepath.Join(dir, "expected.json"), &expected)
	files, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	// Each template with one case; package chat tests all cases.
	names := make([]string, 0, len(cases))
	for name := range cases {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, file := range files {
		name := names[i%len(names)]
		t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
			want := expected[filepath.Base(file)][name]
			r := realizarIn(t, string(cases[name]), "template", file, "--vars", "-", "--now", "2025-06-15T12:34:56")
			if !want.OK {
				fails(t, r, 1)
				return
			}
			if r.code != 0 || r.stdout != want.Text {
				t.Errorf("exit code %d, standard error %q (- want, + got)\n%s", r.code, r.stderr, cmp.Diff(want.Text, r.stdout))
			}
		})
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
