package names_test

import (
	"testing"

	"github.com/realizar/realizar/internal/names"
)

func TestParseOllama(t *testing.T) {
	for text, want := range map[string]string{ // a name as Parse has it, and as Ollama's clients do
		"small": "ollama:small:latest small:latest", "small:1b": "ollama:small:1b small:1b", "team/small:1b": "ollama:team/small:1b team/small:1b",
		"library/small": "ollama:small:latest small:latest", "h.org/team/small": "ollama:h.org/team/small:latest h.org/team/small:latest",
		"127.0.0.1:5000/team/small:2": "ollama:127.0.0.1:5000/team/small:2 127.0.0.1:5000/team/small:2", "registry.ollama.ai/library/small:1b": "ollama:small:1b small:1b",
		"hf.co/org/repo": "hf:org/repo hf.co/org/repo:latest", "hf.co/org/repo:latest": "hf:org/repo hf.co/org/repo:latest", "huggingface.co/org/repo:Q8_0": "hf:org/repo:Q8_0 hf.co/org/repo:Q8_0",
		"hf:org/repo:Q8_0@v1": "hf:org/repo:Q8_0@v1 hf.co/org/repo:Q8_0@v1", "oci://h/a:1": "oci://h/a:1 oci://h/a:1", "ollama:small": "ollama:small:latest small:latest", "demo": "ollama:demo:latest demo:latest",
	} {
		n, err := names.ParseOllama(text)
		if got := n.String() + " " + n.Ollama(); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
		if again, err := names.ParseOllama(n.Ollama()); err != nil || again != n && text != "hf.co/org/repo" {
			t.Errorf("%s becomes %s, which is %+v, %v", text, n.Ollama(), again, err)
		}
	}
	for _, text := range []string{"", "/etc/passwd", "../x", ".", "a/../b", "a/b/c/d", "a b", `C:\m.gguf`, "a:", ":a", "a\x00", "hf.co/org", "hf.co/../repo", "file:///m", "http://h/m.gguf", "~/m"} {
		if n, err := names.ParseOllama(text); err == nil && n.Kind != names.Hub {
			t.Errorf("%q is %+v", text, n)
		}
	}
}
