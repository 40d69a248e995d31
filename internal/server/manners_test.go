package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// manyConnections is a client's side that keeps n connections.
func manyConnections(t testing.TB, n int) *http.Transport {
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// idle waits until the model is at work for nobody, and no request waits for it, and checks
// that nothing is kept.
func (s *service) idle() {
	s.t.Helper()
	for {
		m := s.model.Metrics()
		if m.Running+m.Waiting+s.server.Admitted() == 0 {
			for _, p := range m.Pools {
				if p.Used != 0 {
					s.t.Errorf("%d pages are in use by nobody", p.Used)
				}
			}
			return
		}
		runtime.Gosched()
	}
}

// endless begins a stream that lasts longer than a test, and returns when the stream has begun. The
// stream is read, because one that is not loses its place in the engine to others.
func (s *service) endless() (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/completions",
		strings.NewReader(`{"model":"small","prompt":"x","stream":true,"max_tokens":60000,"ignore_eos":true}`))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		s.t.Fatalf("status %d", resp.StatusCode)
	}
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
	return func() {
		cancel()
		read.Wait()
		resp.Body.Close()
	}
}

// long makes a model whose context has room for an endless stream.
var long = modeltest.Context(1 << 16)

func TestQueueIsBounded(t *testing.T) {
	s := serve(t, server.Config{Parallel: 1, MaxQueue: 1}, realizar.Options{Parallel: 1}, long)
	stop := s.endless()
	waiting, leave := context.WithCancel(context.Background())
	var second sync.WaitGroup
	second.Go(func() {
		r, err := http.NewRequestWithContext(waiting, http.MethodPost, s.URL+"/v1/completions",
			strings.NewReader(`{"model":"small","prompt":"y","max_tokens":60000,"ignore_eos":true}`))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := s.Client().Do(r); err == nil {
			t.Errorf("a request of 60000 tokens is answered with %s", resp.Status)
			resp.Body.Close()
		}
	})
	for s.server.Admitted() < 2 { // the first still runs
		runtime.Gosched()
	}
	r := s.post("/v1/completions", `{"model":"small","prompt":"z"}`)
	r.fails(t, 429, "", "queue_full")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	r = s.get("/ready")
	r.fails(t, 429, "", "queue_full")
	stop()
	leave()
	second.Wait()
	s.idle()
	if r := s.post("/v1/completions", `{"model":"small","prompt":"z","max_tokens":2}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.idle()
}

// Far more requests than there is room for: each is answered or refused, and a stream
// that was there before is what it would be without them.
func TestFlood(t *testing.T) {
	const clients, each = 64, 16
	s := serve(t, server.Config{Parallel: 4, MaxQueue: 8}, realizar.Options{Parallel: 4}, modeltest.Context(2048))
	s.Client().Transport = manyConnections(t, clients+1)
	body := `{"model":"small","prompt":"steady","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":1000}`
	alone, err := s.stream("/v1/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if got, err := s.stream("/v1/completions", body); err == nil && got.texts[0] != alone.texts[0] {
			t.Errorf("the steady stream differs")
		} else if err != nil && !strings.Contains(err.Error(), "queue_full") {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	count := map[int]int{}
	for range clients {
		all.Go(func() {
			for i := range each {
				r := s.post("/v1/completions", fmt.Sprintf(`{"model":"small","prompt":"flood %d","max_tokens":3}`, i))
				if r.status == 429 {
					r.fails(t, 429, "", "queue_full")
				}
				mu.Lock()
				count[r.status]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if count[200] == 0 || count[429] == 0 || count[200]+count[429] != clients*each {
		t.Errorf("statuses %v", count)
	}
	s.idle()
}

// Many requests wait for their turn, all of which comes, beside a stream that goes on as
// if it were alone.
func TestLongQueue(t *testing.T) {
	waiting := 300
	if n, err := strconv.Atoi(os.Getenv("REALIZAR_QUEUED")); err == nil {
		waiting = n // for a longer trial
	}
	s := serve(t, server.Config{Parallel: 4, MaxQueue: waiting}, realizar.Options{Parallel: 4}, modeltest.Context(4096))
	s.Client().Transport = manyConnections(t, waiting)
	body := `{"model":"small","prompt":"steady","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":3000}`
	alone, err := s.stream("/v1/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if got, err := s.stream("/v1/completions", body); err != nil || got.texts[0] != alone.texts[0] {
			t.Errorf("the steady stream is disturbed: %v", err)
		}
	})
	for i := range waiting {
		all.Go(func() {
			r := s.post("/v1/completions", fmt.Sprintf(`{"model":"small","prompt":"waiting %d","max_tokens":2}`, i))
			if r.status != 200 {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	all.Wait()
	s.idle()
}

func TestBodies(t *testing.T) {
	s := serve(t, server.Config{MaxBody: 1 << 20}, realizar.Options{})
	s.post("/v1/completions", `{"model":"small","prompt":"`+strings.Repeat("x", 1<<20)+`"}`).fails(t, 413, "", "body_too_large")
	// One of 100 MB whose length is not said.
	r, err := http.NewRequest(http.MethodPost, s.URL+"/v1/completions", io.MultiReader(strings.NewReader(`{"prompt":"`), io.LimitReader(endlessX{}, 100<<20)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err == nil { // else the connection was cut while the client still wrote
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	s.post("/v1/chat/completions", chatBody("hi", `"metadata":`+deep+`,"max_tokens":1`)).whole(t)
	s.post("/v1/chat/completions", chatBody("hi", `"x":`+deep)).fails(t, 400, "x", "unknown_parameter")
	if r := s.post("/v1/chat/completions", chatBody("hi", `"tools":[{"type":"function","function":{"name":"f","parameters":`+deep+`}}]`)); r.status != 400 && r.status != 422 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.idle()
}

type endlessX struct{}

func (endlessX) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// dial sends raw bytes to the server.
func (s *service) dial(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// rawPost is a request as it is sent.
func rawPost(body string) string {
	return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// A body that does not come to its end ends with an error, and takes nobody's place.
func TestBodyTimeout(t *testing.T) {
	s := serve(t, server.Config{Parallel: 1, MaxQueue: 1, Deadlines: server.Deadlines{Body: 20 * time.Millisecond}}, realizar.Options{Parallel: 1})
	request := rawPost(`{"model":"small","prompt":"x"}`)
	c := s.dial(request[:len(request)-5])
	defer c.Close()
	if r := s.post("/v1/completions", `{"model":"small","prompt":"y","max_tokens":1}`); r.status != 200 {
		t.Errorf("another request: %d", r.status)
	}
	answer, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400")) || !bytes.Contains(answer, []byte("body_timeout")) {
		t.Errorf("%q, %v", answer, err)
	}
}

// A request that is refused before its body is read is answered, and its connection closed,
// though the body never comes.
func TestRefusedBodyTimeout(t *testing.T) {
	s := serve(t, server.Config{Parallel: 1, Deadlines: server.Deadlines{Body: 20 * time.Millisecond}}, realizar.Options{Parallel: 1})
	for _, test := range []struct{ line, status string }{
		{"POST /nothing", "404"},
		{"PUT /v1/completions", "405"},
		{"GET /health", "200"},
	} {
		c := s.dial(test.line + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc")
		answer, err := io.ReadAll(c)
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 "+test.status)) {
			t.Errorf("%s: %q, %v", test.line, answer, err)
		}
		c.Close()
	}
	s.idle()
}

// Clients that leave at any byte of their request or of its answer take nothing with
// them, and disturb nobody.
func TestDisconnects(t *testing.T) {
	s := serve(t, server.Config{Parallel: 4, MaxQueue: 64}, realizar.Options{Parallel: 4}, modeltest.Context(2048))
	steady := `{"model":"small","prompt":"steady","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":400}`
	alone, err := s.stream("/v1/completions", steady)
	if err != nil {
		t.Fatal(err)
	}
	request := rawPost(`{"model":"small","prompt":"leaving","stream":true,"ignore_eos":true,"max_tokens":1500}`)
	var all sync.WaitGroup
	all.Go(func() {
		for range 3 {
			if got, err := s.stream("/v1/completions", steady); err != nil || got.texts[0] != alone.texts[0] {
				t.Errorf("the steady stream is disturbed: %v", err)
			}
		}
	})
	for sent := 1; sent < len(request); sent += 7 {
		s.dial(request[:sent]).Close()
	}
	for read := 0; read < 1000; read += 37 {
		c := s.dial(request)
		if _, err := io.ReadFull(c, make([]byte, read)); err != nil {
			t.Error(err)
		}
		if read%2 == 0 { // with a reset
			if err := c.(*net.TCPConn).SetLinger(0); err != nil {
				t.Error(err)
			}
		}
		c.Close()
	}
	all.Wait()
	s.idle()
}

// A client that does not read loses its stream; others have theirs.
func TestSlowReader(t *testing.T) {
	s := serve(t, server.Config{Parallel: 2, Deadlines: server.Deadlines{Write: 50 * time.Millisecond}}, realizar.Options{Parallel: 2}, long)
	body := `{"model":"small","prompt":"steady","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":100}`
	alone, err := s.stream("/v1/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	slow := s.dial(rawPost(`{"model":"small","prompt":"x","stream":true,"logprobs":5,"max_tokens":60000,"ignore_eos":true}`))
	defer slow.Close()
	for s.model.Metrics().Ended[realizar.Cancelled] == 0 {
		if got, err := s.stream("/v1/completions", body); err != nil || got.texts[0] != alone.texts[0] {
			t.Fatalf("another's stream is disturbed: %v", err)
		}
	}
	s.idle()
}

func TestRequestTimeout(t *testing.T) {
	s := serve(t, server.Config{Deadlines: server.Deadlines{Request: 20 * time.Millisecond}}, realizar.Options{}, long)
	body := `{"model":"small","prompt":"x","max_tokens":60000,"ignore_eos":true`
	s.post("/v1/completions", body+`}`).fails(t, 503, "", "request_timeout")
	if _, err := s.stream("/v1/completions", body+`,"stream":true}`); err == nil || !strings.Contains(err.Error(), "longer than the server") {
		t.Errorf("the stream ends with %v", err)
	}
	s.idle()
}

// Draining refuses what is new, finishes what is under way, and ends streams without an end of
// their own; stopping ends answers, too.
func TestDrain(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, long)
	stop := s.endless()
	defer stop()
	late, cancelLate := context.WithTimeout(t.Context(), time.Minute)
	defer cancelLate()
	r, err := http.NewRequestWithContext(late, http.MethodGet, s.URL+"/models/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	s.server.Drain()
	if data, err := io.ReadAll(events.Body); err != nil || !strings.Contains(string(data), `"state":"ready"`) {
		t.Errorf("the events end with %v after %s", err, data)
	}
	s.post("/v1/completions", `{"model":"small","prompt":"y"}`).fails(t, 503, "", "draining")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.server.Wait(ended); err == nil {
		t.Error("nothing is under way")
	}
	s.server.Stop()
	if err := s.server.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	s.idle()
}

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for content, says := range map[string]string{"": "has no key", "# only words\n": "has no key", "a b\n": ":1:", "ok\nschlüssel\n": ":2:"} {
		write(content)
		if _, err := server.ReadKeys(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", content, err, says)
		}
	}
	write("one\ntwo\n")
	keys, err := server.ReadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Keys: keys}, realizar.Options{})
	for header, code := range map[string]string{"": "missing_api_key", "Bearer ": "missing_api_key", "Basic one": "missing_api_key", "Bearer three": "invalid_api_key", "Bearer on": "invalid_api_key", "bearer one": "", "Bearer two": ""} {
		r, err := http.NewRequest(http.MethodGet, s.URL+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", header)
		answer := s.send(r)
		if code == "" {
			if answer.status != 200 {
				t.Errorf("%q: %d", header, answer.status)
			}
			continue
		}
		answer.fails(t, 401, "", code)
		if answer.header.Get("WWW-Authenticate") == "" {
			t.Error("no WWW-Authenticate")
		}
	}
	s.post("/v1/chat/completions", `not even JSON`).fails(t, 401, "", "missing_api_key")
}

func TestOrigins(t *testing.T) {
	ask := func(s *service, method, origin string, header ...string) reply {
		t.Helper()
		r, err := http.NewRequest(method, s.URL+"/v1/completions", strings.NewReader(`{"model":"small","prompt":"x","max_tokens":1}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		for i := 0; i < len(header); i += 2 {
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
			r.Header.Set(header[i], header[i+1])
		}
		return s.send(r)
	}
	closed := serve(t, server.Config{}, realizar.Options{})
	ask(closed, "POST", "https://page.example").fails(t, 403, "", "origin_not_allowed")
	if r := ask(closed, "POST", closed.URL); r.status != 200 { // a page of its own
		t.Errorf("%d %s", r.status, r.body)
	}
	for host, status := range map[string]int{"localhost:8080": 200, "[::1]:8080": 200, "stranger.example:8080": 403} {
		if r := ask(closed, "POST", "http://"+host, "Host", host); r.status != status {
			t.Errorf("a page of %s: %d %s", host, r.status, r.body)
		}
	}
	// A page of this machine may, if it calls the server by an address, unless others are named.
	for origin, status := range map[string]int{"http://localhost:3000": 200, "https://127.0.0.1": 200, "http://[::1]:1": 200, "http://localhost.example:3000": 403, "null": 403, "file://localhost": 403} {
		r := ask(closed, "POST", origin, "Sec-Fetch-Site", "cross-site")
		if allowed := r.header.Get("Access-Control-Allow-Origin"); r.status != status || (allowed == origin) != (status == 200) {
			t.Errorf("a page of %s: %d %s, allowed %q", origin, r.status, r.body, allowed)
		}
	}
	ask(closed, "POST", "http://localhost:3000", "Host", "stranger.example").fails(t, 403, "", "origin_not_allowed")
	some := serve(t, server.Config{Origins: []string{"https://page.example"}}, realizar.Options{})
	if r := ask(some, "POST", "https://page.example", "Host", "page.example"); r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != "https://page.example" || !strings.Contains(r.header.Get("Access-Control-Expose-Headers"), "X-Left-Out") {
		t.Errorf("%d %s", r.status, r.body)
	}
	ask(some, "POST", "https://other.example").fails(t, 403, "", "origin_not_allowed")
	ask(some, "POST", "http://localhost:3000").fails(t, 403, "", "origin_not_allowed")
	before := ask(some, "OPTIONS", "https://page.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
	if before.status != 204 || before.header.Get("Access-Control-Allow-Headers") != "authorization" || !strings.Contains(before.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("%d %v", before.status, before.header)
	}
	all := serve(t, server.Config{Origins: []string{"*"}}, realizar.Options{})
	if r := ask(all, "POST", "https://other.example"); r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// The log has a line for each request: never what it says, unless that is wanted.
func TestLog(t *testing.T) {
	for _, prompts := range []bool{false, true} {
		var log bytes.Buffer
		s := serve(t, server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), LogPrompts: prompts}, realizar.Options{})
		s.post("/v1/chat/completions", chatBody("SECRET", `"max_tokens":2,"ignore_eos":true`))
		s.post("/v1/chat/completions", chatBody("SECRET", `"temperature":"SECRET"`))
		s.post("/v1/chat/completions", chatBody(strings.Repeat("SECRET", 100), ""))
		s.post("/v1/chat/completions", `{"model":"small","messages":[{"role":"SECRET","content":"SECRET"}]}`)
		s.Close() // the lines are written
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], "status=200") || !strings.Contains(lines[0], "completion_tokens=2") ||
			!strings.Contains(lines[1], "temperature") || !strings.Contains(lines[2], "context_length_exceeded") {
			t.Errorf("the log is\n%s", &log)
		}
		if strings.Contains(log.String(), "SECRET") != prompts {
			t.Errorf("prompts wanted: %v; the log is\n%s", prompts, &log)
		}
	}
}
