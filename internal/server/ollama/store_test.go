package ollama_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/manage"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/store"
)

// serveStore serves a model, with an empty store and a hub that has one model.
func serveStore(t *testing.T) (s *service, babble []byte) {
	t.Helper()
	babble = modeltest.Babble(t)
	hub := hubtest.New(t)
	hub.AddRepo("org/babble", map[string][]byte{"babble-Q8_0.gguf": babble})
	home := t.TempDir()
	client := fetch.NewClient(fetch.Options{})
	m := manage.New(manage.Config{Puller: &pull.Puller{
		Store: &store.Store{Hub: filepath.Join(home, "hub"), Own: filepath.Join(home, "own")}, Client: client, Endpoint: hub.URL,
	}})
	t.Cleanup(func() {
		m.Close()
		client.Close()
	})
	return serve(t, server.Config{Store: m}), babble
}

func (s *service) listed() (names []string) {
	s.t.Helper()
	for _, e := range s.models("/api/tags") {
		names = append(names, e.Name)
	}
	return names
}

func (s *service) lists(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.listed()); diff != "" {
		s.t.Errorf("the models (-want +got)\n%s", diff)
	}
}

// done checks that r is a success, with an empty body or the last line of a stream.
func (r reply) done(t *testing.T, status int) {
	t.Helper()
	if r.status != status || r.body != "" && !strings.HasSuffix(strings.TrimSpace(r.body), `{"status":"success"}`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestStore(t *testing.T) {
	s, babble := serveStore(t)
	digest := "sha256:" + hubtest.SHA256(babble)
	s.lists("small:latest")
	r := s.post("/api/pull", `{"model":"hf.co/org/babble:Q8_0"}`)
	r.done(t, 200)
	var statuses []string
	for line := range strings.Lines(r.body) {
		var p struct{ Status, Digest string }
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if p.Digest != "" && p.Digest != digest {
			t.Errorf("%s: want %s", line, digest)
		}
		if len(statuses) == 0 || statuses[len(statuses)-1] != p.Status {
			statuses = append(statuses, p.Status)
		}
	}
	if diff := cmp.Diff([]string{"pulling manifest", "pulling " + digest[7:19], "verifying sha256 digest", "writing manifest", "success"}, statuses); diff != "" {
		t.Error(diff)
	}
	if got := r.header.Get("Content-Type"); got != server.Lines {
		t.Errorf("it is %s", got)
	}
	s.post("/api/pull", `{"name":"hf.co/org/babble:Q8_0","stream":false}`).done(t, 200)
	s.post("/api/pull", `{"model":"small"}`).done(t, 200) // served, and not in the store
	s.lists("small:latest", "hf.co/org/babble:Q8_0")
	s.post("/api/chat", `{"model":"hf.co/org/babble:Q8_0","messages":[{"role":"user","content":"a"}]}`).fails(t, 404, "not found", "not served; name it")
	s.post("/api/copy", `{"source":"hf.co/org/babble:Q8_0","destination":"mine"}`).done(t, 200)
	s.post("/api/create", `{"model":"again","from":"mine"}`).done(t, 200)
	s.send("DELETE", "/api/delete", `{"model":"mine"}`).done(t, 200)
	s.lists("small:latest", "again:latest", "hf.co/org/babble:Q8_0")
	var a shown
	if r := s.post("/api/show", `{"model":"again","verbose":true}`); r.status != 200 || json.Unmarshal([]byte(r.body), &a) != nil || a.Details.Family != "llama" || len(a.Tensors) == 0 || a.Template == "" || !strings.Contains(a.Modelfile, "FROM again:latest") || len(a.Capabilities) != 1 || a.Modified.IsZero() {
		t.Errorf("%d %.500s", r.status, r.body)
	}
	if running := s.models("/api/ps"); len(running) != 1 || running[0].Name != "small:latest" {
		t.Errorf("%+v", running)
	}

	if r := s.send("HEAD", "/api/blobs/sha256:"+strings.Repeat("0", 64), ""); r.status != 404 {
		t.Errorf("%d", r.status)
	}
	text := "a text"
	blob := "/api/blobs/sha256:" + hubtest.SHA256([]byte(text))
	s.post(blob, "another").fails(t, 400, "digest")
	s.post(blob, text).done(t, 201)
	s.post(blob, text).done(t, 200)
	s.send("HEAD", blob, "").done(t, 200)
	s.post("/api/create", `{"model":"b","stream":false,"files":{"m.gguf":"`+strings.TrimPrefix(blob, "/api/blobs/")+`"}}`).fails(t, 400, "cannot be read")

	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/api/pull", `{}`, 400, "model is missing"},
		{"POST", "/api/pull", `{"model":"/etc/passwd"}`, 400, "want ollama:"},
		{"POST", "/api/pull", `{"model":"a\u0000b"}`, 400, "control character"},
		{"POST", "/api/pull", `{"model":"example.org/a/b"}`, 403, "--allow-registry example.org"},
		{"POST", "/api/pull", `{"model":"hf.co/org/other","stream":false}`, 404, "no such repository"},
		{"POST", "/api/pull", `{"model":"a","branch":"b"}`, 400, "branch"},
		{"POST", "/api/push", `{"model":"again"}`, 400, "host/namespace/name:tag"},
		{"POST", "/api/copy", `{"source":"again"}`, 400, "destination is missing"},
		{"POST", "/api/copy", `{"source":"again","destination":"../x"}`, 400, "want ollama:"},
		{"POST", "/api/create", `{"model":"b"}`, 400, "from is missing"},
		{"POST", "/api/create", `{"model":"b","from":"again","files":{"m.gguf":"x"}}`, 400, "files"},
		{"POST", "/api/create", `{"model":"b","from":"none"}`, 404, "not found"},
		{"POST", "/api/create", `{"model":"b","from":"again","template":"x"}`, 400, "template"},
		{"POST", "/api/create", `{"model":"b","from":"again","modelfile":"FROM again"}`, 400, "modelfile"},
		{"DELETE", "/api/delete", `{"model":"small"}`, 404, "not found"},
		{"DELETE", "/api/delete", `{"model":"none"}`, 404, "not found"},
	} {
		r := s.send(c.method, c.path, c.body)
		if lines := strings.Split(strings.TrimSpace(r.body), "\n"); len(lines) > 1 { // an error within a stream
			r.status, r.body = c.status, lines[len(lines)-1]
		}
		r.fails(t, c.status, c.says)
	}
	s.lists("small:latest", "again:latest", "hf.co/org/babble:Q8_0")
}
