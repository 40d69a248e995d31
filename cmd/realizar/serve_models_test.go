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

// manyModels returns the files of five equal models, of which the last is cut in half, and the
// bytes that one model takes.
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

// TestServeSeveral checks that models of which only two fit are all served, and that a damaged
// model does not affect the others.
func TestServeSeveral(t *testing.T) {
	paths, each := manyModels(t)
	s := serveAll(t, paths, "--parallel", "4", "--memory", fmt.Sprint(2*each+each/2))
	ask := func(model string) (status int, text string) {
		status, named, text, err := s.completion(fmt.Sprintf(`{"model":%q,"prompt":"hello","max_tokens":8,"seed":1}`, model))
		if err != nil || status == http.StatusOK && named != model {
			t.Errorf("%s: %d %q %s (%v)", model, status, named, text, err)
		}
		return status, text
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

// TestServeNamesClash checks that two models with the same name are an error that says what to do.
func TestServeNamesClash(t *testing.T) {
	path := modeltest.Llama(t)
	other := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.Symlink(path, other); err != nil {
		t.Fatal(err)
	}
	fails(t, realizarRun(t, "serve", path, other, "--port", "0"), 1, "are both called")
	fails(t, realizarRun(t, "serve", path, other, "--served-model-name", "x"), 2, "--served-model-name names a single model")
}

// completion requests a completion. It returns the model's name and the text of the answer, or if
// the status is not 200 the body.
func (s *served) completion(body string) (status int, model, text string, err error) {
	resp, err := s.post("/v1/completions", body)
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", "", err
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, "", string(data), nil
	}
	var answer struct {
		Model   string
		Choices []struct{ Text string }
	}
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Choices) != 1 {
		return resp.StatusCode, "", "", fmt.Errorf("%s (%w)", data, err)
	}
	return resp.StatusCode, answer.Model, answer.Choices[0].Text, nil
}

// complete requests eight tokens of a model.
func (s *served) complete(model string) (status int, text string) {
	s.t.Helper()
	status, _, text, err := s.completion(fmt.Sprintf(`{"model":%q,"prompt":"hello","max_tokens":8,"seed":1,"ignore_eos":true}`, model))
	if err != nil {
		s.t.Fatal(err)
	}
	return status, text
}

// stateOf returns the states of the models from GET /models, with aliases: "a ready, b (c) absent".
func (s *served) stateOf() string {
	s.t.Helper()
	var list struct {
		Data []struct {
			ID, State string
			Aliases   []string
		}
	}
	if _, body := s.get("/models"); json.Unmarshal([]byte(body), &list) != nil {
		s.t.Fatal(body)
	}
	var all []string
	for _, m := range list.Data {
		name := m.ID
		if len(m.Aliases) > 0 {
			name += fmt.Sprint(" ", m.Aliases)
		}
		all = append(all, name+" "+m.State)
	}
	return strings.Join(all, ", ")
}

// reread makes the server read its models again.
func (s *served) reread() {
	s.t.Helper()
	const done = "the models "
	before := strings.Count(s.log.String(), done)
	s.signal(syscall.SIGHUP)
	s.log.waitFor(func(log string) bool { return strings.Count(log, done) > before })
}

// TestServeModelsFile checks what a file of models can say: names, sources relative to the file,
// aliases, which models are loaded at once, and how each runs. A change of the file applies while
// the server runs; a file with an error changes nothing.
func TestServeModelsFile(t *testing.T) {
	paths, _ := manyModels(t)
	file := filepath.Join(filepath.Dir(paths[0]), "models.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("small:\n  source: a.gguf\n  aliases: [s]\n  preload: true\n  context: 64\nb.gguf:\ndamaged: {source: half.gguf}\nmissing: {source: none.gguf}\n")
	s := serveAll(t, nil, "--models", file)
	s.log.wait("model=small")
	if got := s.stateOf(); got != "small [s] ready, b.gguf absent, damaged absent, missing absent" {
		t.Error(got)
	}
	status, want := s.complete("s")
	if status != 200 {
		t.Errorf("%d %s", status, want)
	}
	if status, got := s.complete("b.gguf"); status != 200 || got != want {
		t.Errorf("%d %q, want %q", status, got, want)
	}
	for _, model := range []string{"damaged", "missing"} {
		if status, text := s.complete(model); status != http.StatusServiceUnavailable || !strings.Contains(text, "model_failed") {
			t.Errorf("%s: %d %s", model, status, text)
		}
	}
	resp, err := s.post("/v1/completions", fmt.Sprintf(`{"model":"small","prompt":%q}`, strings.Repeat("hello ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a prompt beyond the context of small: %d", resp.StatusCode)
	}

	write("small:\n  source: b.gguf\nb.gguf: {pinned: true}\ndamaged: {source: c.gguf}\n")
	s.reread()
	if got := s.stateOf(); !strings.HasSuffix(got, ", b.gguf ready, damaged absent") {
		t.Error(got)
	}
	if status, text := s.complete("s"); status != 404 {
		t.Errorf("an alias that is gone: %d %s", status, text)
	}
	if status, got := s.complete("damaged"); status != 200 || got != want {
		t.Errorf("a model that is mended: %d %s", status, got)
	}
	before := s.stateOf()
	write("small: {source: a.gguf, contxt: 1}\n")
	s.reread()
	if got := s.stateOf(); got != before || !strings.Contains(s.log.String(), "contxt") {
		t.Errorf("after an error: %s", got)
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

// TestServeKeepsCache checks that with room in host memory, a prefix is found after its model was
// unloaded and loaded again.
func TestServeKeepsCache(t *testing.T) {
	s := serveAll(t, nil, "--models", writeFile(t, "models.yaml", "m: {source: "+modeltest.Llama(t, modeltest.Context(1024))+", kv-host: 4MiB}\n"))
	cached := func() (n int) {
		t.Helper()
		resp, err := s.post("/v1/completions", fmt.Sprintf(`{"model":"m","prompt":%q,"max_tokens":1}`, strings.Repeat("some words ", 20)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var answer struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode, err)
		}
		return answer.Usage.Details.Cached
	}
	if n := cached(); n != 0 {
		t.Errorf("%d tokens are found at first", n)
	}
	want := cached()
	resp, err := s.post("/models/unload", `{"model":"m"}`)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != 200 {
		t.Error(resp.StatusCode)
	}
	if n := cached(); n != want || n == 0 {
		t.Errorf("%d tokens are found after an unload, %d before", n, want)
	}
}

// TestServeModelsFolder checks that a folder's models are served by their file names, and that
// added, removed and replaced files apply without a signal.
func TestServeModelsFolder(t *testing.T) {
	t.Parallel()
	paths, _ := manyModels(t)
	folder := filepath.Dir(paths[0])
	deeper := filepath.Join(folder, "more")
	for _, err := range []error{
		os.Mkdir(deeper, 0o700), os.Rename(paths[1], filepath.Join(deeper, "b.gguf")),
		os.WriteFile(filepath.Join(folder, "mmproj-a.gguf"), []byte("x"), 0o600), os.WriteFile(filepath.Join(folder, "notes.txt"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := serveAll(t, nil, "--models", folder)
	if got := s.stateOf(); got != "a absent, c absent, d absent, half absent, more/b absent" {
		t.Error(got)
	}
	status, want := s.complete("more/b")
	if status != 200 {
		t.Errorf("%d %s", status, want)
	}
	if err := os.Rename(paths[2], paths[4]); err != nil { // c replaces half
		t.Fatal(err)
	}
	s.log.wait("the models were read again")
	if got := s.stateOf(); got != "a absent, d absent, half absent, more/b ready" {
		t.Error(got)
	}
	if status, got := s.complete("half"); status != 200 || got != want {
		t.Errorf("%d %s", status, got)
	}
}

func TestServeModelsErrors(t *testing.T) {
	empty := t.TempDir()
	for want, args := range map[string][]string{
		"--models: stat /nowhere: no such file or directory; want a file, a folder, or store": {"/nowhere"},
		empty + " has no model; want GGUF files":                                              {empty},
		"has no model; want names with their settings below":                                  {writeFile(t, "m.yaml", "# none\n")},
		`m.yaml:2: "a": "ttll" is not a setting of a model; the nearest are ttl`:              {writeFile(t, "m.yaml", "a:\n  ttll: 1\n")},
		`m.yaml:3: "a": context=-1: want 1 or more`:                                           {writeFile(t, "m.yaml", "a:\n  pinned: true\n  context: -1\n")},
		`m.yaml:1: "a": memory applies to all models together; give it to serve`:              {writeFile(t, "m.yaml", "a: {memory: 1GiB}\n")},
		`m.yaml:1: "a": kv-cache: "f17" is not one of auto, f16, q8, f8, f32`:                 {writeFile(t, "m.yaml", "a: {kv-cache: f17}\n")},
		`m.yaml:1: "a": ttl=-1s: want more than 0`:                                            {writeFile(t, "m.yaml", "a: {ttl: -1s}\n")},
		"demo and demo are both called demo":                                                  {writeFile(t, "m.yaml", "demo:\nb: {source: demo, aliases: [demo]}\n")},
		"--served-model-name names a single model":                                            {writeFile(t, "m.yaml", "demo:\n"), "--served-model-name", "x"},
		"x: x is neither a file nor the name of a model":                                      {writeFile(t, "m.yaml", "x:\n")},
	} {
		r := realizarRun(t, append([]string{"serve", "--port", "0", "--models"}, args...)...)
		fails(t, r, r.code, want)
		if r.code != 1 && r.code != 2 {
			t.Errorf("exit code %d", r.code)
		}
	}
}
