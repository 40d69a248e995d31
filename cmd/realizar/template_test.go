package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
)

const greeting = `{"messages": [{"role": "user", "content": "Hi <b>"}], "add_generation_prompt": true}`

const greetingText = "<|im_start|>user\nHi <b><|im_end|>\n<|im_start|>assistant\n"

func TestTemplate(t *testing.T) {
	vars := writeFile(t, "vars.json", greeting)
	hub := modeltest.Hub(t)
	jinja := writeFile(t, "chat_template.jinja", modeltest.ChatTemplate)
	weightless := modeltest.Hub(t, modeltest.VocabularyOnly())
	for name, source := range map[string]string{
		"file":                  jinja,
		"GGUF":                  modeltest.Llama(t),
		"vocabulary":            modeltest.Llama(t, modeltest.VocabularyOnly()),
		"folder":                hub,
		"safetensors":           filepath.Join(hub, "model.safetensors"),
		"folder, no weights":    weightless,
		"tokenizer_config.json": filepath.Join(hub, "tokenizer_config.json"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := output(t, "", "template", source, "--vars", vars); got != greetingText {
				t.Errorf("wrote %q, want %q", got, greetingText)
			}
			if got := output(t, greeting, "template", source, "--vars", "-"); got != greetingText {
				t.Errorf("from standard input: wrote %q, want %q", got, greetingText)
			}
		})
	}
}

func TestTemplateSpecialTokens(t *testing.T) {
	const source = `{{ bos_token }}|{{ eos_token }}|{{ unk_token is defined }}`
	for _, model := range []string{modeltest.Llama(t, modeltest.Template(source)), modeltest.Hub(t, modeltest.Template(source))} {
		if got, want := output(t, `{}`, "template", model, "--vars", "-"), "<|endoftext|>|<|im_end|>|False"; got != want {
			t.Errorf("the model's own tokens: %q, want %q", got, want)
		}
		if got, want := output(t, `{"bos_token": "<s>"}`, "template", model, "--vars", "-"), "<s>|<|im_end|>|False"; got != want {
			t.Errorf("with a variable instead: %q, want %q", got, want)
		}
	}
	file := writeFile(t, "t.jinja", source)
	if got, want := output(t, `{}`, "template", file, "--vars", "-"), "||False"; got != want {
		t.Errorf("a file alone: %q, want %q", got, want)
	}
}

func TestTemplateNow(t *testing.T) {
	file := writeFile(t, "t.jinja", "{{ strftime_now('%d %b %Y %H:%M:%S') }}\n\n")
	if got, want := output(t, `{}`, "template", file, "--vars", "-", "--now", "2025-06-15T12:34:56"), "15 Jun 2025 12:34:56\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestTemplateForTools(t *testing.T) {
	dir := modeltest.Hub(t)
	folder := filepath.Join(dir, "additional_chat_templates")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tool_use.jinja"), []byte("{{ tools | length }} tools"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := output(t, `{"tools": [{}, {}]}`, "template", dir, "--vars", "-"); got != "2 tools" {
		t.Errorf("with tools: %q", got)
	}
	if got := output(t, greeting, "template", dir, "--vars", "-"); got != greetingText {
		t.Errorf("without tools: %q", got)
	}
}

func TestTemplateErrors(t *testing.T) {
	model := modeltest.Llama(t)
	for name, test := range map[string]struct {
		source, vars string
		says         string
	}{
		"refused":       {model, `{"messages": [{"role": "jester", "content": ""}]}`, "unknown role jester"},
		"not JSON":      {model, `{"messages"`, "JSON object"},
		"not an object": {model, `[1]`, "JSON object"},
		"null":          {model, `null`, "JSON object"},
		"nothing":       {model, ``, "JSON object"},
		"no template":   {modeltest.Llama(t, modeltest.Template("")), `{}`, "no chat template"},
		"syntax":        {writeFile(t, "broken.jinja", "{% if %}"), `{}`, "broken.jinja"},
		"absent":        {filepath.Join(t.TempDir(), "absent.jinja"), `{}`, "absent.jinja"},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, realizarIn(t, test.vars, "template", test.source, "--vars", "-"), 1, test.says)
		})
	}
	fails(t, realizarRun(t, "template", model, "--vars", "absent.json"), 1, "absent.json")
}
