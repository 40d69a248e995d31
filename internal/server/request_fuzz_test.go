package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/page"
	"github.com/realizar/realizar/internal/server/servertest"
)

// FuzzRequest: whatever a request has in its line, its headers and its body, with a key or
// without, the server answers it, not with 500, in JSON where it says so, and holds nothing
// afterwards.
func FuzzRequest(f *testing.F) {
	m, err := realizar.Open(f.Context(), modeltest.Llama(f, modeltest.Context(64)), realizar.Options{Device: "cpu"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = m.Close() })
	path := filepath.Join(f.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	keys, err := server.ReadKeys(path)
	if err != nil {
		f.Fatal(err)
	}
	s, err := server.New(servertest.One(f, m, name), server.Config{
		Dialects: dialects.All, Parallel: 4, Keys: keys, MaxBody: 1 << 16, RequestMemory: 1 << 20,
		Deadlines: server.Deadlines{Request: time.Second}, Hosts: []string{"named.example"}, Origins: []string{"https://page.example"},
		Page: page.New(),
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, route := range s.Routes() {
		f.Add(route, "localhost", "Bearer secret", "https://page.example", "id-1", "step", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", `{"model":"small"}`)
	}
	for path, body := range map[string]string{
		"/v1/completions": `{"model":"small","prompt":"a","max_tokens":1}`, "/tokenize": `{"prompt":"a b"}`, "/detokenize": `{"tokens":[1,2]}`,
		"/v1/chat/completions": `{"model":"small","messages":[{"role":"user","content":"a"}],"max_tokens":1,"stream":true}`,
		"/v1/responses":        `{"model":"small","input":"a","max_output_tokens":16}`, "/v1/embeddings": `{"model":"small","input":[[1,2]],"pooling":"mean"}`,
		"/v1/messages": `{"model":"small","messages":[{"role":"user","content":"a"}],"max_tokens":1,"stream":true}`, "/v1/messages/count_tokens": `{"model":"small","messages":[{"role":"user","content":"a"}]}`,
		"/api/chat": `{"model":"small","messages":[{"role":"user","content":"a"}],"options":{"num_predict":1}}`, "/api/generate": `{"model":"small","prompt":"a","stream":false,"options":{"num_predict":1}}`,
		"/api/embed": `{"model":"small","input":["a"],"dimensions":2}`, "/api/show": `{"model":"small","verbose":true}`,
	} {
		f.Add("POST "+path, "", "Bearer secret", "", "", "", "", body)
	}
	f.Add("OPTIONS /v1/models", "stranger.example:1", "Basic x", "null", "\x00", "all", "00-", "")
	f.Fuzz(func(t *testing.T, line, host, key, origin, id, level, trace, body string) {
		method, path, _ := strings.Cut(line, " ")
		r, err := http.NewRequest(method, "http://localhost/", strings.NewReader(body))
		if err != nil {
			return // which net/http would not read either
		}
		r.URL.Path, r.Host, r.RemoteAddr = "/"+strings.TrimPrefix(path, "/"), host, "127.0.0.1:1"
		for name, value := range map[string]string{"Authorization": key, "Origin": origin, "X-Request-Id": id, "X-Trace-Level": level, "Traceparent": trace, "Content-Type": "application/json"} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %q is no JSON", w.Code, w.Body)
		}
		if got := w.Header().Get("X-Request-Id"); got == "" || strings.ContainsAny(got, "\x00\r\n ") || len(got) > 128 {
			t.Errorf("the request's name is %q", got)
		}
		if n := s.Held(); n != 0 {
			t.Errorf("%d bytes are held", n)
		}
	})
}
