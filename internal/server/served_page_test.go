package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/internal/server/page"
)

// asked returns the answer to a request with headers, given in pairs. Host sets the server's name.
func (s *service) asked(method, path string, header ...string) reply {
	s.t.Helper()
	r, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	return s.send(r)
}

// browsed returns the answer to a browser.
func (s *service) browsed(path string, header ...string) reply {
	s.t.Helper()
	return s.asked("GET", path, append([]string{"Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}, header...)...)
}

// isPage checks that a reply is the page, with the headers that keep it out of frames and from
// other hosts.
func (r reply) isPage(t testing.TB) {
	t.Helper()
	if r.status != 200 || !strings.Contains(r.header.Get("Content-Type"), "text/html") || !strings.Contains(r.body, "<title>realizar</title>") {
		t.Errorf("%d %v is not the page", r.status, r.header)
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(r.header.Get("Content-Security-Policy"), part) {
			t.Errorf("the page has the policy %q, without %s", r.header.Get("Content-Security-Policy"), part)
		}
	}
	if r.header.Get("X-Frame-Options") != "DENY" || r.header.Get("Access-Control-Allow-Origin") != "" || r.header.Get("Set-Cookie") != "" {
		t.Errorf("the page has the header %v", r.header)
	}
}

// TestPage checks that the page is served to browsers, under the server's own names only, and that
// other paths are unaffected.
func TestPage(t *testing.T) {
	s := serve(t, server.Config{Page: page.New(), Hosts: []string{"named.example"}}, realizar.Options{})
	s.browsed("/").isPage(t)
	s.browsed("/", "Host", "named.example:8080").isPage(t)
	s.browsed("/?a=b").isPage(t)
	if r := s.asked("HEAD", "/", "Accept", "text/html"); r.status != 200 || r.body != "" || r.header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
	if r := s.get("/page/licences.txt"); r.status != 200 || r.header.Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v", r.status, r.header)
	}
	for _, path := range []string{"/page/none.js", "/page", "/page/", "/index.html", "/c/1", "/page/a/b"} {
		r := s.get(path)
		r.fails(t, 404, "", "not_found")
		if r.header.Get("Content-Security-Policy") != "" {
			t.Errorf("%s has the policy of the page", path)
		}
	}
	if r := s.asked("POST", "/"); r.status != 405 || r.header.Get("Allow") != "GET" {
		t.Errorf("POST: %d %v", r.status, r.header)
	}

	// A page of another site whose name resolves to this machine, and one that frames the page.
	for _, path := range []string{"/", "/page/licences.txt", "/v1/models"} {
		s.asked("GET", path, "Host", "stranger.example").fails(t, 403, "", "host_not_allowed")
	}
	s.browsed("/", "Origin", "https://stranger.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe").isPage(t) // browsers refuse to show it
}

// TestPageAsks checks that the page may send requests to its server, under each of the server's
// names.
func TestPageAsks(t *testing.T) {
	ask := func(s *service, host string) reply {
		t.Helper()
		r, err := http.NewRequest("POST", s.URL+"/v1/completions", strings.NewReader(`{"model":"small","prompt":"x","max_tokens":1}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return s.send(r)
	}
	named := serve(t, server.Config{Page: page.New(), Hosts: []string{"named.example"}}, realizar.Options{})
	for host, status := range map[string]int{"named.example": 200, "NAMED.example:8080": 200, "localhost:8080": 200, "127.0.0.1:8080": 200, "other.example": 403} {
		if r := ask(named, host); r.status != status {
			t.Errorf("%s: %d %s", host, r.status, r.body)
		}
	}
	anyone := serve(t, server.Config{Page: page.New(), Hosts: []string{"*"}}, realizar.Options{})
	ask(anyone, "named.example").fails(t, 403, "", "origin_not_allowed") // no name is known to be the server's
	if r := ask(anyone, "localhost"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// keysOf returns the keys of a file with one key.
func keysOf(t *testing.T, key string) *server.Keys {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := server.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestPageAndKeys checks that the page needs no key, and its requests do.
func TestPageAndKeys(t *testing.T) {
	s := serve(t, server.Config{Page: page.New(), Keys: keysOf(t, "secret")}, realizar.Options{})
	s.browsed("/").isPage(t)
	s.get("/v1/models").fails(t, 401, "", "missing_api_key")
}

// A rootDialect has an endpoint at /.
type rootDialect struct{ openai.Dialect }

func (rootDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "GET /{$}", Handle: func(x *server.Exchange) error {
		x.WriteJSON([]byte(`"running"`))
		return nil
	}}}
}

// TestPageBesideADialect checks that if a dialect has an endpoint at /, browsers get the page and
// other clients the dialect's answer, with a key if keys are required.
func TestPageBesideADialect(t *testing.T) {
	for _, keys := range []*server.Keys{nil, keysOf(t, "secret")} {
		c := server.Config{Page: page.New(), Keys: keys, Dialects: []server.Dialect{rootDialect{}}}
		s := serve(t, c, realizar.Options{})
		s.browsed("/").isPage(t)
		for _, accept := range []string{"*/*", "application/json"} {
			r := s.asked("GET", "/", "Accept", accept, "Authorization", "Bearer secret")
			if r.body != `"running"` || !slices.Contains(r.header.Values("Vary"), "Accept") {
				t.Errorf("%s: %d %s %v", accept, r.status, r.body, r.header)
			}
		}
		if r := s.asked("GET", "/"); (r.status == 401) != (keys != nil) {
			t.Errorf("without a key: %d %s", r.status, r.body)
		}
		if r := s.get("/page/licences.txt"); r.status != 200 {
			t.Errorf("a file: %d", r.status)
		}
	}
	alone := serve(t, server.Config{Dialects: []server.Dialect{rootDialect{}}}, realizar.Options{})
	if r := alone.asked("GET", "/", "Accept", "text/html"); r.body != `"running"` {
		t.Errorf("without a page: %d %s", r.status, r.body)
	}
}

// TestNoPage checks that without a page its paths are not found.
func TestNoPage(t *testing.T) {
	s := serve(t, server.Config{Dialects: []server.Dialect{openai.Dialect{}}}, realizar.Options{})
	for _, path := range []string{"/", "/page/licences.txt"} {
		s.browsed(path).fails(t, 404, "", "not_found")
	}
	s.asked("POST", "/").fails(t, 404, "", "not_found")
}

// TestPageWhileLoading checks that the page is served while the model is being loaded.
func TestPageWhileLoading(t *testing.T) {
	loading := server.Loading{Dialects: dialects.All, Page: page.New(), Hosts: []string{}}
	h := httptest.NewServer(&loading)
	defer h.Close()
	s := &service{Server: h, t: t}
	s.browsed("/").isPage(t)
	for _, path := range []string{"/", "/v1/models"} { // programs that check whether a model is served
		s.asked("GET", path).fails(t, 503, "", "loading")
	}
	s.asked("POST", "/").fails(t, 503, "", "loading")
	s.get("/page/none.js").fails(t, 503, "", "loading")
	for _, path := range []string{"/", "/health", "/v1/models"} {
		s.asked("GET", path, "Host", "stranger.example").fails(t, 403, "", "host_not_allowed")
	}
}
