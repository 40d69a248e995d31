package modelfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

func TestRemotePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{
		"https://host/org/model/resolve/main/model.gguf", "HTTP://host", "s3://bucket/model", "hf://org/name", "file:///models/m.gguf",
		"ollama://llama3:8b", "a+b-c.d1://", "https://",
	} {
		_, err := modelfile.Open(path)
		wantError(t, err, modelfile.ErrNotModel, path, "realizar reads local files", "download the model first")
	}
	// A folder with that name changes nothing.
	if err := os.MkdirAll(filepath.Join("s3:", "bucket"), 0o700); err == nil {
		_, err := modelfile.Open("s3://bucket")
		wantError(t, err, modelfile.ErrNotModel, "download")
	}
}

// A text that is no address is an ordinary path.
func TestPathsLikeAddresses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"https:/host", "://host", "1a://host", "c:model.gguf", "a_b://host", "models/https://host"} {
		_, err := modelfile.Open(path)
		if err == nil || strings.Contains(err.Error(), "address") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestHubNames(t *testing.T) {
	t.Chdir(t.TempDir())
	const hint = "if it is the name of a model on a hub, download the model first"
	if err := os.Mkdir("models", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"org/name", "Org-1/Name-7B_x.y-GGUF", "org/name:Q4_K_M"} {
		_, err := modelfile.Open(path)
		wantError(t, err, fs.ErrNotExist, path, hint, "realizar reads local files")
	}
	for _, path := range []string{"", "name", "/org/name", "./org/name", "../name", "org/name/", "a/b/c", "~/name", "models/name", "org/na me"} {
		_, err := modelfile.Open(path)
		wantError(t, err, fs.ErrNotExist, path)
		if err != nil && strings.Contains(err.Error(), hint) {
			t.Errorf("%q is taken for the name of a model: %v", path, err)
		}
	}
}
