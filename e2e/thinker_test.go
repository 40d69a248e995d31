package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// thinker returns the path of the model of the tests with a chat template that has thoughts.
func thinker(t *testing.T) string {
	t.Helper()
	return withTemplate(t, "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ '<think>' ~ m.reasoning_content ~ '</think>' if m.reasoning_content }}{{ m.content }}<|im_end|>\n"+
		"{% endfor %}<|im_start|>assistant\n{{ '<think></think>' if enable_thinking is defined and not enable_thinking else '<think>' }}")
}

// withTemplate returns the path of the model of the tests with another chat template, which
// must not be longer than the model's own.
func withTemplate(t *testing.T, template string) string {
	t.Helper()
	data, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	from, end := bytes.Index(data, []byte("{% for message in messages %}")), []byte("<|im_start|>assistant\n{% endif %}")
	to := bytes.Index(data, end) + len(end)
	const comment = len("{##}")
	if from < 0 || to < from+len(template)+comment {
		t.Fatalf("the template of %s has %d bytes; want %d or more", model, to-from, len(template)+comment)
	}
	copy(data[from:to], template+"{#"+strings.Repeat(" ", to-from-len(template)-comment)+"#}")
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
