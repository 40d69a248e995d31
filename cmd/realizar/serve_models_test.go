//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// manyModels are the files of five models alike, of which the last is cut in half, and what one
// of them takes.
func manyModels(t *testing.T) (paths []string, each int64) {
	t.Helper()
	data, err := os.ReadFile(modeltest.Llama(t))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d", "half"} {
		path := filepath.Join(folder, name+".gguf")
		if name == "half" {
			data = data[:len(data)/2]
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	d, err := realizar.Describe(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	least, err := d.Least(t.Context(), realizar.Options{Device: "cpu", Parallel: 4})
	if err != nil {
		t.Fatal(err)
	}
	return paths, least.Bytes
}

// TestServeSeveral: of models of which two have room all are served, and a damaged one disturbs
// no other.
func TestServeSeveral(t *testing.T) {
	paths, each := manyModels(t)
	s := serveAll(t, paths, "--parallel", "4", "--memory", fmt.Sprint(2*each+each/2))
	ask := func(model string) (status int, text string) {
		resp, err := s.post("/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"hello","max_tokens":8,"seed":1}`, model))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		var answer struct {
			Model   string
			Choices []struct{ Text string }
		}
		data, err := io.ReadAll(resp.Body)
		if err == nil {
			err = json.Unmarshal(data, &answer)
		}
		if err != nil || resp.StatusCode == http.StatusOK && (answer.Model != model || len(answer.Choices) != 1) {
			t.Errorf("%s: %d %s (%v)", model, resp.StatusCode, data, err)
			return resp.StatusCode, ""
		}
		if resp.StatusCode != http.StatusOK {
			return resp.StatusCode, string(data)
		}
		return resp.StatusCode, answer.Choices[0].Text
	}
	_, want := ask("a")
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for i := range 4 {
				if status, got := ask(string(rune('a' + (client+i)%4))); status != 200 || got != want {
					t.Errorf("%d %q, want %q", status, got, want)
				}
				if status, text := ask("half"); status != http.StatusServiceUnavailable || !strings.Contains(text, "model_failed") {
					t.Errorf("half: %d %s", status, text)
				}
			}
		})
	}
	all.Wait()
	var list struct {
		Data []struct {
			ID     string
			Memory map[string]int64
			Loads  int
		}
		Memory map[string]struct{ Used, Limit int64 }
	}
	if _, body := s.get("/models"); json.Unmarshal([]byte(body), &list) != nil || len(list.Data) != 5 {
		t.Fatal(body)
	}
	if m := list.Memory["cpu"]; m.Limit != 2*each+each/2 || m.Used > 2*each {
		t.Errorf("%+v; each takes %d", m, each)
	}
	for _, m := range list.Data[:4] {
		if m.Loads == 0 {
			t.Errorf("%+v", m)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

// TestServeNamesClash: two models of one name are an error that says what to do.
func TestServeNamesClash(t *testing.T) {
	path := modeltest.Llama(t)
	other := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.Symlink(path, other); err != nil {
		t.Fatal(err)
	}
	fails(t, realizarRun(t, "serve", path, other, "--port", "0"), 1, "are both called")
	fails(t, realizarRun(t, "serve", path, other, "--served-model-name", "x"), 2, "--served-model-name is for one model")
}
