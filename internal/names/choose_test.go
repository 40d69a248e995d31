package names_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/names"
)

func TestChoose(t *testing.T) {
	many := []string{
		"README.md", "m-BF16-00001-of-00002.gguf", "m-BF16-00002-of-00002.gguf", "m-IQ4_XS.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-Q8_0.gguf", "m-UD-Q4_K_XL.gguf",
		"mmproj-F16.gguf", "m-mmproj-Q8_0.gguf", "imatrix_unsloth.gguf", "mtp-m-Q4_K_M.gguf", "eagle3-m.gguf", "lora-adapter-Q4_K_M.gguf", "Q6_K/m-Q6_K-00001-of-00002.gguf", "Q6_K/m-Q6_K-00002-of-00002.gguf",
	}
	for _, c := range []struct {
		want string
		main string
		n    int
	}{
		{"", "m-Q4_K_M.gguf", 1}, {"q4_k_m", "m-Q4_K_M.gguf", 1}, {"Q4_K_S", "m-Q4_K_S.gguf", 1}, {"Q8_0", "m-Q8_0.gguf", 1}, {"Q4_K_XL", "m-UD-Q4_K_XL.gguf", 1},
		{"UD-Q4_K_XL", "m-UD-Q4_K_XL.gguf", 1}, {"BF16", "m-BF16-00001-of-00002.gguf", 2}, {"Q6_K", "Q6_K/m-Q6_K-00001-of-00002.gguf", 2}, {"m-IQ4_XS.gguf", "m-IQ4_XS.gguf", 1},
	} {
		got, err := names.Choose(many, c.want)
		if err != nil || got.Main != c.main || len(got.Files) != c.n || got.Files[0] != c.main {
			t.Errorf("%q: %+v, %v, want %s", c.want, got, err, c.main)
		}
	}
	for files, want := range map[string]string{
		"b-Q8_0.gguf a-F16.gguf":              "b-Q8_0.gguf",
		"b-F32.gguf a-F16.gguf":               "a-F16.gguf",
		"model.gguf":                          "model.gguf",
		"x-Q4_K_M-00001-of-00002.gguf y.gguf": "y.gguf", // an incomplete model is not a default
	} {
		if got, err := names.Choose(strings.Fields(files), ""); err != nil || got.Main != want {
			t.Errorf("%s: %+v, %v, want %s", files, got, err, want)
		}
	}
}

func TestChooseFolder(t *testing.T) {
	got, err := names.Choose([]string{
		"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", names.WeightsIndex, "tokenizer.json", "vocab.txt", "pytorch_model.bin",
		"modeling_x.py", "onnx/model.onnx", "1_Pooling/config.json", "consolidated.safetensors", "original/model.safetensors", "additional_chat_templates/tool_use.jinja",
	}, "")
	want := []string{"1_Pooling/config.json", "additional_chat_templates/tool_use.jinja", "config.json", "tokenizer.json", "vocab.txt",
		"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", names.WeightsIndex}
	if err != nil || !slices.Equal(got.Files, want) || got.Main != "" {
		t.Errorf("%+v, %v, want %q", got, err, want)
	}
	got, err = names.Choose([]string{"config.json", "model.safetensors", "consolidated.safetensors", "m-Q4_0.gguf"}, "safetensors")
	if want := []string{"config.json", "model.safetensors"}; err != nil || !slices.Equal(got.Files, want) {
		t.Errorf("%+v, %v, want %q", got, err, want)
	}
	if all := names.All([]string{"config.json", "model.safetensors", "m-Q4_0.gguf", "x-00001-of-00002.gguf", "mmproj-x.gguf"}); len(all) != 2 {
		t.Errorf("%+v, want two models", all)
	}
}

func TestChooseErrors(t *testing.T) {
	for _, c := range []struct{ files, want, says string }{
		{"", "", "none is a GGUF file"},
		{"README.md mmproj-F16.gguf", "", "none is a GGUF file"},
		{"a-Q4_0.gguf b-Q8_0.gguf", "Q6_K", "there are Q4_0, Q8_0"},
		{"config.json model.safetensors", "Q4_K_M", `:safetensors`},
		{"a-Q4_K_M-00001-of-00003.gguf a-Q4_K_M-00003-of-00003.gguf", "", "2 of 3 parts"},
		{"model.safetensors", "", "no config.json"},
		{"config.json model-00001-of-00002.safetensors", "", "1 of 2 files"},
		{"config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors", "", names.WeightsIndex},
		{"a-Q4_K_M-00001-of-00099999.gguf", "Q4_K_M/../x", "there is no"},
	} {
		_, err := names.Choose(strings.Fields(c.files), c.want)
		if !errors.Is(err, names.ErrNoModel) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", c.files, err, c.says)
		}
	}
	if _, err := names.Choose([]string{"../m-Q4_K_M.gguf"}, ""); err == nil {
		t.Error("a file outside of the folder is taken")
	}
	if _, err := names.Choose([]string{"config.json", "Config.json", "model.safetensors"}, ""); err == nil {
		t.Error("two files that differ by case are taken")
	}
}

func TestTitle(t *testing.T) {
	for file, want := range map[string]string{
		"Qwen3-0.6B-Q8_0.gguf": "Qwen3-0.6B-Q8_0", "a/b/model.safetensors": "model", "big-00001-of-00003.gguf": "big",
		"folder": "folder", "v1.5": "v1.5", "big-1-of-3.gguf": "big-1-of-3",
	} {
		if got := names.Title(file); got != want {
			t.Errorf("%s is called %q, want %q", file, got, want)
		}
	}
}
