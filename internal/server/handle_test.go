package server_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/internal/server/servertest"
)

// A testDialect is OpenAI's with an endpoint of a test.
type testDialect struct {
	openai.Dialect
	handle server.Handler
}

func (d testDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "GET /test", Handle: servertest.Held(d.handle)}}
}

// withRoute is a server with a handler of a test.
func withRoute(t *testing.T, log io.Writer, h server.Handler) *httptest.Server {
	t.Helper()
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(servertest.One(t, m, "m"), server.Config{Dialects: []server.Dialect{testDialect{handle: h}}, Parallel: 1, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		server.Client().CloseIdleConnections()
		server.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// A panic ends its request with an error and goes to the log, whether or not the answer
// has begun, and in whichever goroutine it is.
func TestPanic(t *testing.T) {
	for name, test := range map[string]struct {
		handler server.Handler
		status  int
		body    string
	}{
		"before the answer": {func(*server.Exchange) error { panic("oh") }, 500, `"type":"server_error"`},
		"in a stream": {func(x *server.Exchange) error {
			var stream *server.Stream
			stream = x.Stream(server.Events, func(e *server.Error) error {
				return stream.SendEvent("", openai.Dialect{}.Error(http.Header{}, e))
			})
			if err := stream.SendEvent("", []byte("1")); err != nil {
				return err
			}
			panic("oh")
		}, 200, "data: 1\n\ndata: {\"error\""},
		"in one of many": {func(*server.Exchange) error {
			return func() (err error) { defer server.RecoverTo(&err); panic("oh") }()
		}, 500, `"type":"server_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			server := withRoute(t, &log, test.handler)
			for range 2 { // the process and the connection go on
				resp, err := server.Client().Get(server.URL + "/test")
				if err != nil {
					t.Fatal(err)
				}
				data, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != test.status || !strings.Contains(string(data), test.body) || strings.Contains(string(data), "oh") {
					t.Errorf("%d %s, %v", resp.StatusCode, data, err)
				}
			}
			server.Close()
			if got := log.String(); !strings.Contains(got, "panic: oh") || !strings.Contains(got, "handle_test.go") {
				t.Errorf("the log is %s", got)
			}
		})
	}
}

// An answer that breaks off is no answer: the client learns of it.
func TestBrokenOff(t *testing.T) {
	var log bytes.Buffer
	server := withRoute(t, &log, func(x *server.Exchange) error {
		x.Writer().Header().Set("Content-Length", "100")
		if _, err := io.WriteString(x.Writer(), "half"); err != nil {
			return err
		}
		return errors.New("no more")
	})
	resp, err := server.Client().Get(server.URL + "/test")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%d %q", resp.StatusCode, data)
	}
}

func TestErrorsOfTheModel(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		kind   string
	}{
		{realizar.ErrClosed, 503, "overloaded_error"},
		{realizar.ErrRequest, 400, "invalid_request_error"},
		{&realizar.ContextError{Prompt: 2, Context: 1}, 400, "invalid_request_error"},
		{realizar.ErrNoTemplate, 422, "invalid_request_error"},
		{realizar.ErrNoTokenizer, 422, "invalid_request_error"},
		{realizar.ErrNotFinite, 500, "server_error"},
		{errors.New("secret"), 500, "server_error"},
	} {
		e := server.ErrorOf(test.err)
		if e.Status != test.status || !strings.Contains(string(openai.Dialect{}.Error(http.Header{}, e)), `"type":"`+test.kind+`"`) || strings.Contains(e.Message, "secret") {
			t.Errorf("%v: %d %s", test.err, e.Status, e.Message)
		}
		if e.Status == 503 && e.RetryAfter == 0 {
			t.Errorf("%v: no Retry-After", test.err)
		}
	}
}
