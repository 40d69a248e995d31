//go:build unix

package modelfile_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/modelfile"
)

// Opening a named pipe would wait for a writer for ever.
func TestNamedPipe(t *testing.T) {
	for _, name := range []string{"model.gguf", "config.json", "model.safetensors.index.json"} {
		dir := folder(t, map[string]string{"weights.safetensors": shard(t, nil)})
		path := filepath.Join(dir, name)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Skipf("this system makes no named pipes: %v", err)
		}
		_, err := modelfile.Open(dir)
		if name == "model.gguf" {
			_, err = modelfile.Open(path)
		}
		wantError(t, err, modelfile.ErrNotModel, path, "named pipe")
	}
	_, err := modelfile.Open("/dev/null")
	wantError(t, err, modelfile.ErrNotModel, "/dev/null", "device")
}
