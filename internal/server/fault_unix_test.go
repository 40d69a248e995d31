//go:build unix

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// Where the model's file is cut short, requests are told, and the server goes on.
func TestCutShort(t *testing.T) {
	modeltest.NeedsFaults(t)
	path := modeltest.Llama(t)
	s := serveFile(t, server.Config{}, realizar.Options{Activations: realizar.ActivationsF32}, path)
	const request = `{"model": "small", "prompt": "hello", "max_tokens": 2}`
	if r := s.post("/v1/completions", request); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e := s.post("/v1/completions", request).fails(t, 500, "", "damaged_file")
		if !strings.HasPrefix(e.Message, "model.gguf: tensor ") || !strings.Contains(e.Message, "was cut short") || strings.Contains(e.Message, filepath.Dir(path)) {
			t.Errorf("message %q", e.Message)
		}
	}
	if r := s.get("/v1/models"); r.status != 200 {
		t.Errorf("the list of models: %d %s", r.status, r.body)
	}
}
