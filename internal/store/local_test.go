package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/store"
)

// Folder finds the models of a folder and of its folders, whole ones alone.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{
		"a.gguf", "mmproj-a.gguf", "lora-a.gguf", "notes.txt",
		"big-00001-of-00002.gguf", "big-00002-of-00002.gguf", "half-00001-of-00002.gguf",
		"sub/b.gguf", "sub/c.gguf", "sub/deep/d.gguf",
		"hub/config.json", "hub/model.safetensors", "hub/tokenizer.json",
		".cache/e.gguf",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"linked": "sub", "nowhere": "none", "link.gguf": "a.gguf"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Skip(err) // some systems want rights for it
		}
	}
	found, err := store.Folder(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		name, err := filepath.Rel(folder, m.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(name))
	}
	if want := []string{"a.gguf", "big-00001-of-00002.gguf", "link.gguf", "hub", "linked/b.gguf", "linked/c.gguf", "sub/b.gguf", "sub/c.gguf"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if big := found[1]; len(big.Files) != 2 || big.Size() != int64(2*len("big-00001-of-00002.gguf")) {
		t.Errorf("%+v", big)
	}
	if _, err := store.Folder(filepath.Join(folder, "a.gguf")); err == nil {
		t.Error("a file is no folder")
	}
}
