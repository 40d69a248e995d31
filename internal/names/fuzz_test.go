package names_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/names"
)

// A name that parses survives String and Parse. A path that CheckFile accepts stays in its folder.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"hf:org/repo:Q4_K_M@main", "org/repo", "ollama:host:1/ns/model:tag", "oci://host:5000/a/b@sha256:" + digest, "https://h/m.gguf#sha256=" + digest,
		"../x", "/etc/passwd", "a\x00b", "C:\\x", "a/../b", "hf:a--b/c", "ollama:a/../b", "oci://h/a/../b:1", "http://localhost/%2e%2e#sha256=" + digest, "CON.gguf", "m-00001-of-00002.gguf", "e\u0301",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain, ok := names.ParsePlain(text)
		if again, err := names.Parse(plain.String()); ok && (err != nil || again != plain) {
			t.Errorf("%q is %+v, which is read as %+v, %v", text, plain, again, err)
		}
		if n, err := names.Parse(text); err == nil {
			if again, err := names.Parse(n.String()); err != nil || again != n {
				t.Errorf("%q is %+v, which is read as %+v, %v", text, n, again, err)
			}
			for _, part := range []string{n.RepoID(), n.Repository, n.Tag, n.Revision} {
				if part != "" && !filepath.IsLocal(part) {
					t.Errorf("%q has %q, which leads out of a folder", text, part)
				}
			}
		}
		if names.CheckFile(text) == nil && (!filepath.IsLocal(text) || filepath.ToSlash(filepath.Clean(text)) != text || strings.Contains(text, "\x00")) {
			t.Errorf("%q is taken for a file's path", text)
		}
		// Listings with the path itself, a folder of that name, and names that may clash with it.
		list := []string{text, text + "/model-Q4_0.gguf", strings.ToUpper(text), "model.safetensors", "config.json"}
		for _, want := range []string{"", text, "safetensors"} {
			if c, err := names.Choose(list, want); err == nil && names.CheckFiles(c.Files) != nil {
				t.Errorf("%q chosen from %q", c.Files, list)
			}
		}
	})
}
