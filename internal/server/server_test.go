package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// name is what the model is served under.
const name = "small"

// A service is a server of a small model at an address.
type service struct {
	*httptest.Server
	t      testing.TB
	model  *realizar.Model
	server *server.Server
}

// serve serves a small model, as c says.
func serve(t testing.TB, c server.Config, o realizar.Options, options ...modeltest.Option) *service {
	t.Helper()
	return serveFile(t, c, o, modeltest.Llama(t, options...))
}

// serveFile serves the model at path.
func serveFile(t testing.TB, c server.Config, o realizar.Options, path string) *service {
	t.Helper()
	return serveNamed(t, []string{name}, c, o, path)
}

// serveNamed serves the model at path under these names.
func serveNamed(t testing.TB, names []string, c server.Config, o realizar.Options, path string) *service {
	t.Helper()
	m := servertest.Open(t, path, o)
	s := serveModels(t, servertest.One(t, m, names...), c)
	s.model = m
	return s
}

// serveModels serves models, which it leaves open.
func serveModels(t testing.TB, models *server.Models, c server.Config) *service {
	t.Helper()
	if c.Parallel == 0 {
		c.Parallel = 16
	}
	if c.Dialects == nil {
		c.Dialects = dialects.All
	}
	h, s := servertest.Serve(t, models, c)
	return &service{Server: h, t: t, server: s}
}

// A reply is an answer that has come as a whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends body, which is JSON, to path.
func (s *service) post(path, body string) reply {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return s.send(r)
}

// postWith sends body to path, and reads no answer.
func (s *service) postWith(ctx context.Context, path, body string) error {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func (s *service) get(path string) reply {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(r)
}

func (s *service) send(r *http.Request) reply {
	s.t.Helper()
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

// A failure is an error as clients see it.
type failure struct {
	Message   string
	Type      string
	Param     *string
	Code      *string
	RequestID string `json:"request_id"`
}

// fails reads an error of that status about that field, "" for none.
func (r reply) fails(t testing.TB, status int, param, code string) failure {
	t.Helper()
	var body struct{ Error failure }
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || body.Error.Message == "" {
		t.Fatalf("%d %s is not an error (%v)", r.status, r.body, err)
	}
	e := body.Error
	if gotParam, gotCode := value(e.Param), value(e.Code); r.status != status || gotParam != param || gotCode != code {
		t.Errorf("%d %s: param %q, code %q, want %d, %q, %q", r.status, r.body, gotParam, gotCode, status, param, code)
	}
	return e
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestAddresses(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	if r := s.get("/health"); r.status != 200 || r.body != `{"status":"ok"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.get("/nothing").fails(t, 404, "", "not_found")
	r := s.post("/v1/models", "{}")
	r.fails(t, 405, "", "")
	if got := r.header.Get("Allow"); got != "GET" {
		t.Errorf("Allow: %q", got)
	}
	if r := s.get("/v1/models/" + name); r.status != 200 || !strings.Contains(r.body, `"id":"small"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.get("/v1/models/other").fails(t, 404, "model", "model_not_found")
	s.server.Drain()
	r = s.get("/ready")
	r.fails(t, 503, "", "draining")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestConfig(t *testing.T) {
	for says, c := range map[string]server.Config{
		"at one time": {},
		"a queue":     {Parallel: 1, MaxQueue: -1},
		"bytes":       {Parallel: 1, MaxBody: -1},
		"below 0":     {Dialects: dialects.All, Parallel: 1, Deadlines: server.Deadlines{Request: -1}},
		"no dialect":  {Parallel: 1},
	} {
		if _, err := server.New(nil, c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", c, err, says)
		}
	}
}
