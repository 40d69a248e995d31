//go:build unix

package server_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// Where the model's file is cut short, requests are told, and the server goes on. It is not
// ready until the file is whole again.
func TestCutShort(t *testing.T) {
	modeltest.NeedsFaults(t)
	path := modeltest.Llama(t)
	s := serveFile(t, server.Config{}, realizar.Options{Activations: realizar.ActivationsF32}, path)
	const request = `{"model": "small", "prompt": "hello", "max_tokens": 2}`
	if r := s.post("/v1/completions", request); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e := s.post("/v1/completions", request).fails(t, 500, "", "damaged_file")
		if !strings.HasPrefix(e.Message, "model.gguf: tensor ") || !strings.Contains(e.Message, "was truncated") || strings.Contains(e.Message, filepath.Dir(path)) {
			t.Errorf("message %q", e.Message)
		}
	}
	if r := s.get("/v1/models"); r.status != 200 {
		t.Errorf("the list of models: %d %s", r.status, r.body)
	}
	for range 3 {
		if e := s.get("/ready").fails(t, 503, "", "model_failed"); !strings.Contains(e.Message, "was truncated") {
			t.Errorf("message %q", e.Message)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil { // into the file that is mapped
		t.Fatal(err)
	}
	for s.get("/ready").status != 200 {
		runtime.Gosched()
	}
	if r := s.post("/v1/completions", request); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
