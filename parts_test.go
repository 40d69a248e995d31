package realizar_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
)

// Tokenizers and templates are the same from all paths that have them.
func TestParts(t *testing.T) {
	hub := modeltest.Hub(t)
	renamed := filepath.Join(t.TempDir(), "vocabulary")
	data, err := os.ReadFile(filepath.Join(hub, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(renamed, data, 0o600); err != nil {
		t.Fatal(err)
	}
	incomplete := modeltest.Hub(t, modeltest.VocabularyOnly())
	index := `{"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}`
	if err := os.WriteFile(filepath.Join(incomplete, "model.safetensors.index.json"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path     string
		template bool
	}{
		"folder, shards missing": {incomplete, true},
		"GGUF":                   {modeltest.Llama(t), true},
		"vocabulary":             {modeltest.Llama(t, modeltest.VocabularyOnly()), true},
		"folder":                 {hub, true},
		"folder, no weights":     {modeltest.Hub(t, modeltest.VocabularyOnly()), true},
		"safetensors":            {filepath.Join(hub, "model.safetensors"), true},
		"tokenizer.json":         {filepath.Join(hub, "tokenizer.json"), false},
		"tokenizer, other name":  {renamed, false},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := realizar.OpenTokenizer(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := tok.Encode("<|im_start|>world", false), []int32{270, 86, 261, 263}; !slices.Equal(got, want) {
				t.Errorf("ids are %v, want %v", got, want)
			}
			if !test.template {
				return
			}
			template, special, err := realizar.OpenTemplate(test.path, false)
			if err != nil {
				t.Fatal(err)
			}
			text, err := template.RenderJSON(t.Context(), []byte(`{"messages": [{"role": "user", "content": "hi"}]}`), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := text.String(), "<|im_start|>user\nhi<|im_end|>\n"; got != want {
				t.Errorf("rendered %q, want %q", got, want)
			}
			if diff := cmp.Diff(map[string]string{"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}, special); diff != "" {
				t.Errorf("special tokens (-want +got)\n%s", diff)
			}
		})
	}
}

func TestPartsErrors(t *testing.T) {
	empty := t.TempDir()
	bare := modeltest.Hub(t, modeltest.Template(""))
	if err := os.Remove(filepath.Join(bare, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path                string
		tokenizer, template error
	}{
		{empty, modelfile.ErrNotModel, modelfile.ErrNotModel},
		{bare, realizar.ErrNoTokenizer, realizar.ErrNoTemplate},
		{filepath.Join(empty, "absent"), os.ErrNotExist, os.ErrNotExist},
		{filepath.Join(empty, "absent.json"), os.ErrNotExist, os.ErrNotExist},
	} {
		if _, err := realizar.OpenTokenizer(test.path); !errors.Is(err, test.tokenizer) {
			t.Errorf("tokenizer of %s: %v, want %v", test.path, err, test.tokenizer)
		}
		if _, _, err := realizar.OpenTemplate(test.path, false); !errors.Is(err, test.template) {
			t.Errorf("template of %s: %v, want %v", test.path, err, test.template)
		}
	}
}

// A template works without a tokenizer. Its special tokens come from tokenizer_config.json.
func TestTemplateWithoutTokenizer(t *testing.T) {
	dir := modeltest.Hub(t)
	if err := os.Remove(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	config := `{"chat_template": "{{ eos_token }}", "bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null}`
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	_, special, err := realizar.OpenTemplate(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"bos_token": "<s>", "eos_token": "</s>"}, special); diff != "" {
		t.Errorf("special tokens (-want +got)\n%s", diff)
	}
}

// The tokenizer of a folder without tokenizer.json is its tokenizer.model, which may also be named
// by its path.
func TestTokenizerModel(t *testing.T) {
	// Two BPE pieces with their lengths, scores and types.
	model := []byte("\n\n\n\x03\u2581\x15\x00\x00\x80\xbf" + "\n\x08\n\x01a\x15\x00\x00\x00\xc0" + "\x12\x02\x18\x02" + "\x1a\x02\x20\x00")
	dir := t.TempDir()
	path := filepath.Join(dir, "tokenizer.model")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		t.Fatal(err)
	}
	both := modeltest.Hub(t)
	beside := filepath.Join(both, "tokenizer.model")
	if err := os.WriteFile(beside, model, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, path, beside} {
		tok, err := realizar.OpenTokenizer(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tok.Encode("aa", false), []int32{0, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("%s: ids are %v, want %v", path, got, want)
		}
	}
	if _, err := realizar.OpenTokenizer(filepath.Join(dir, "absent.model")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", err)
	}
}
