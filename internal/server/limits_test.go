package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/tokenizer"
)

// unfinished sends the beginning of a request whose announced body is n bytes longer than body.
func (s *service) unfinished(line, body string, n int) net.Conn {
	s.t.Helper()
	return s.dial(fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", line, len(body)+n, body))
}

// released waits until no request holds memory.
func (s *service) released() {
	s.t.Helper()
	for s.server.Held() > 0 {
		runtime.Gosched()
	}
}

// TestRequestMemory checks that a request that exceeds the memory of all requests is refused with
// the numbers, before its body is read if its length is known, and that its memory is released.
func TestRequestMemory(t *testing.T) {
	s := serve(t, server.Config{RequestMemory: 64 << 10}, realizar.Options{})
	long := `{"model":"small","prompt":"` + strings.Repeat("x", 30<<10) + `"}`
	if e := s.post("/v1/completions", long).fails(t, 413, "", "request_too_large"); !strings.Contains(e.Message, "65536") {
		t.Errorf("%q has no number", e.Message)
	}
	r, err := http.NewRequest(http.MethodPost, s.URL+"/v1/completions", io.MultiReader(strings.NewReader(long))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	s.send(r).fails(t, 413, "", "request_too_large")
	objects := `{"model":"small","prompt":"x","metadata":{"a":[` + strings.Repeat("{},", 1000) + `{}]}}`
	s.post("/v1/completions", objects).fails(t, 413, "", "request_too_large")
	c := s.unfinished("POST /v1/completions", objects[:len(objects)-2], 10) // it is refused before the body ends
	defer c.Close()
	if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413") {
		t.Errorf("%.80q, %v", answer, err)
	}
	if r := s.post("/v1/completions", `{"model":"small","prompt":"x","max_tokens":1}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.released()
	if r := s.get("/metrics"); !strings.Contains(r.body, "realizar_request_memory_limit_bytes 65536\n") || !strings.Contains(r.body, "realizar_request_memory_refused_total 4\n") {
		t.Errorf("the metrics say otherwise")
	}
}

// TestAnswerMemory checks that an answer that exceeds the memory of requests ends with an error.
func TestAnswerMemory(t *testing.T) {
	s := serve(t, server.Config{RequestMemory: 64 << 10}, realizar.Options{}, long)
	body := `{"model":"small","prompt":"x","max_tokens":2000,"ignore_eos":true,"logprobs":5`
	s.post("/v1/completions", body+`}`).fails(t, 413, "", "request_too_large")
	if got, err := s.stream("/v1/completions", body+`,"stream":true,"temperature":0}`); err != nil || len(got.texts) != 1 {
		t.Errorf("a stream, which keeps nothing: %v", err)
	}
	s.released()
	s.idle()
}

// TestUnfinishedBodiesGiveWay checks that requests whose bodies do not arrive give up their memory
// to others.
func TestUnfinishedBodiesGiveWay(t *testing.T) {
	const memory = 1 << 20
	s := serve(t, server.Config{RequestMemory: memory}, realizar.Options{})
	var waiting []net.Conn
	for range 3 {
		c := s.unfinished("POST /v1/completions", `{"model":"small","prompt":"`+strings.Repeat("x", 90<<10), 10)
		defer c.Close()
		waiting = append(waiting, c)
	}
	for s.server.Held() < memory/2 {
		runtime.Gosched()
	}
	s.post("/tokenize", `{"prompt":"`+strings.Repeat("x y ", 20<<10)+`"}`).whole(t)
	gaveWay := make(chan string, len(waiting))
	for _, c := range waiting {
		go func() {
			answer, _ := io.ReadAll(c)
			gaveWay <- string(answer)
		}()
	}
	if answer := <-gaveWay; !strings.HasPrefix(answer, "HTTP/1.1 429") || !strings.Contains(answer, "memory_full") {
		t.Errorf("what gave way is told %q", answer)
	}
	for _, c := range waiting {
		c.Close()
	}
	for range len(waiting) - 1 {
		<-gaveWay
	}
	s.released()
}

// TestUnreadBodies checks that an answer that does not need the body does not wait for it, and that
// the connection ends.
func TestUnreadBodies(t *testing.T) {
	s := serve(t, server.Config{Parallel: 1, Hosts: []string{}}, realizar.Options{}) // a body may take a minute
	for _, test := range []struct{ line, status string }{
		{"POST /nothing", "404"}, {"PUT /v1/completions", "405"}, {"GET /health", "200"}, {"GET /ready", "200"}, {"GET /metrics", "200"},
		{"GET /v1/models", "200"}, {"GET /v1/models/none", "404"}, {"DELETE /health", "405"},
	} {
		c := s.unfinished(test.line, "abc", 2)
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+test.status) {
			t.Errorf("%s: %.80q, %v", test.line, answer, err)
		}
		c.Close()
	}
	large := s.unfinished("POST /v1/completions", "{", 1<<30)
	defer large.Close()
	if answer, _ := io.ReadAll(large); !strings.HasPrefix(string(answer), "HTTP/1.1 413") {
		t.Errorf("%.80q", answer)
	}
	// A body that has arrived and is not read does not end the connection.
	c := s.dial("POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabcGET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	defer c.Close()
	answers, err := io.ReadAll(c)
	if err != nil || strings.Count(string(answers), "HTTP/1.1 ") != 2 {
		t.Errorf("%q, %v", answers, err)
	}
}

// TestPhases checks that the time of a request counts from its header, in every phase.
func TestPhases(t *testing.T) {
	soon := 20 * time.Millisecond
	t.Run("request, in its body", func(t *testing.T) {
		s := serve(t, server.Config{Deadlines: server.Deadlines{Request: soon}}, realizar.Options{})
		c := s.unfinished("POST /v1/completions", "{", 10)
		defer c.Close()
		if answer, err := io.ReadAll(c); err != nil || !strings.Contains(string(answer), "request_timeout") {
			t.Errorf("%s, %v", answer, err)
		}
	})
	t.Run("tokenizer", func(t *testing.T) {
		s := serve(t, server.Config{Deadlines: server.Deadlines{Prepare: 1}}, realizar.Options{})
		s.post("/tokenize", `{"prompt":"`+strings.Repeat("x y ", 1<<20)+`"}`).fails(t, 503, "", "prepare_timeout")
		s.released()
	})
	t.Run("first token", func(t *testing.T) {
		s := serve(t, server.Config{Deadlines: server.Deadlines{FirstToken: time.Millisecond}}, realizar.Options{}, long)
		prompt := strings.Repeat("5,", 50000) + "5" // takes far longer
		s.post("/v1/completions", `{"model":"small","prompt":[`+prompt+`],"max_tokens":1}`).fails(t, 503, "", "first_token_timeout")
		s.released()
		s.idle()
	})
	t.Run("after the first token", func(t *testing.T) {
		const first = time.Second
		s := serve(t, server.Config{Deadlines: server.Deadlines{FirstToken: first}}, realizar.Options{}, long)
		body := `{"model":"small","prompt":"x","stream":true,"max_tokens":60000,"ignore_eos":true}`
		c := s.dial(fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		defer c.Close()
		read := bufio.NewScanner(c)
		for begun := time.Now(); time.Since(begun) < first+first/2; { // a stream is not limited
			if !read.Scan() || strings.Contains(read.Text(), "timeout") {
				t.Fatalf("%q, %v", read.Text(), read.Err())
			}
		}
	})
}

// TestTurns checks that a large request waits for its turn within its time limit, and that small
// requests overtake it.
func TestTurns(t *testing.T) {
	s := serve(t, server.Config{Deadlines: server.Deadlines{Request: 2 * time.Second}}, realizar.Options{})
	large := `{"prompt":"` + strings.Repeat("x y ", 1<<15) + `"}`
	release := s.server.TakeTurns()
	for _, path := range []string{"/tokenize", "/v1/completions"} {
		if r := s.post(path, `{"model":"small","prompt":"x"}`); r.status != 200 {
			t.Errorf("a small request: %d %s", r.status, r.body)
		}
	}
	s.post("/tokenize", large).fails(t, 503, "", "request_timeout")
	s.released()
	release()
	s.post("/tokenize", large).whole(t)
	s.released()
}

// TestHosts checks that if host names are configured, no other name is accepted on any address.
func TestHosts(t *testing.T) {
	ask := func(s *service, path, host string) reply {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		return s.send(r)
	}
	named := serve(t, server.Config{Hosts: []string{"llm.example"}}, realizar.Options{})
	for _, path := range []string{"/metrics", "/ready", "/health", "/v1/models", "/nothing"} {
		for _, host := range []string{"stranger.example", "stranger.example:8080", "llm.example.stranger.example", "localhost.stranger.example", "127.0.0.1.stranger.example"} {
			ask(named, path, host).fails(t, 403, "", "host_not_allowed")
		}
		for _, host := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8080", "[::1]", "llm.example", "LLM.example:443"} {
			if r := ask(named, path, host); r.status == 403 {
				t.Errorf("%s of %s: %s", path, host, r.body)
			}
		}
	}
	for _, hosts := range [][]string{nil, {"*"}} {
		if r := ask(serve(t, server.Config{Hosts: hosts}, realizar.Options{}), "/health", "stranger.example"); r.status != 200 {
			t.Errorf("with %q: %d %s", hosts, r.status, r.body)
		}
	}
}

// listen serves h on bounded connections.
func listen(t *testing.T, h http.Handler, most, each int) (*server.Connections, string) {
	t.Helper()
	bounds, err := server.NewConnections(most, each)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: h, ConnContext: bounds.ConnContext, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(bounds.Listen(l)) })
	t.Cleanup(func() {
		_ = web.Close()
		serving.Wait()
	})
	return bounds, l.Addr().String()
}

func connect(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const healthy = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

// TestConnections checks that idle connections are closed for new ones, the longest idle first, and
// busy ones are not.
func TestConnections(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, long)
	for _, each := range []int{2, 1000} {
		bounds, address := listen(t, s.Config.Handler, 2+each/1000, each)
		most := min(each, 3)
		body := `{"model":"small","prompt":"x","stream":true,"max_tokens":60000,"ignore_eos":true}`
		busy := connect(t, address, fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		if _, err := io.ReadFull(busy, make([]byte, 200)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, busy) }() //nolint:errcheck // reading keeps it busy
		for range 3 * most {
			silent := connect(t, address, "")
			c := connect(t, address, healthy)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("beside connections that say nothing: %v, %v", resp, err)
			}
			if most == 2 { // the silent one had to be closed
				if _, err := silent.Read(make([]byte, 1)); err == nil {
					t.Error("a connection that says nothing was answered")
				}
			}
		}
		if stats := bounds.Stats(); stats.Open > most || stats.Evicted == 0 || stats.Refused != 0 {
			t.Errorf("%+v", stats)
		}
		busy.Close()
	}
	s.idle()
}

// TestConnectionsAtWork checks that if all connections are busy, a new one is refused.
func TestConnectionsAtWork(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, server.Config{}, realizar.Options{})
	var entered sync.WaitGroup
	entered.Add(1)
	bounds, address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Config.Handler.ServeHTTP(&slowWriter{ResponseWriter: w, entered: &entered, release: release}, r)
	}), 1, 1)
	busy := connect(t, address, healthy)
	entered.Wait()
	if _, err := connect(t, address, "").Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the bound was answered")
	}
	close(release)
	if resp, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
	if stats := bounds.Stats(); stats.Refused != 1 || stats.Evicted != 0 {
		t.Errorf("%+v", stats)
	}
}

// A slowWriter writes when release is closed.
type slowWriter struct {
	http.ResponseWriter
	entered *sync.WaitGroup
	release chan struct{}
}

func (w *slowWriter) WriteHeader(status int) {
	w.entered.Done()
	<-w.release
	w.ResponseWriter.WriteHeader(status)
}

// TestConnectionsHalfClose checks that the client can read its answer to the end when its
// connection is closed.
func TestConnectionsHalfClose(t *testing.T) {
	bounds, err := server.NewConnections(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := connect(t, l.Addr().String(), "")
	c, err := bounds.Listen(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("its connections cannot be closed by half, as net/http wants to")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(client); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAnswersBeforeBodies checks that a client that still sends its request's body when the answer
// comes, and asked for the connection to close, can read the answer to the end. The connection
// closes afterwards, or before if a new one needs its place.
func TestAnswersBeforeBodies(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for _, replaced := range []bool{false, true} {
		bounds, address := listen(t, s.Config.Handler, 1, 1)
		waiting, release := make(chan struct{}), make(chan struct{})
		bounds.WaitBy(func(context.Context, time.Duration) {
			close(waiting)
			<-release
		})
		c := connect(t, address, "POST /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 30000000\r\n\r\n"+strings.Repeat("x", 20_000))
		<-waiting
		if _, err := io.WriteString(c, strings.Repeat("x", 20_000)); err != nil {
			t.Errorf("the client cannot send more: %v", err)
		}
		if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404") {
			t.Errorf("%q, %v", answer, err)
		}
		if stats := bounds.Stats(); stats.Open != 1 {
			t.Errorf("%+v while the connection lingers", stats)
		}
		if replaced {
			resp, err := http.ReadResponse(bufio.NewReader(connect(t, address, healthy)), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("a new connection: %v, %v", resp, err)
			}
		}
		close(release)
		var err error
		for err == nil { // until the connection is closed
			_, err = c.Write(make([]byte, 1000))
		}
	}
	s.idle()
}

// A pausing writer pauses before it writes, as if the model were busy.
type pausing struct {
	http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
	pauses  int
}

func (p *pausing) SetWriteDeadline(by time.Time) error {
	if p.pauses > 0 && !by.IsZero() {
		p.pauses--
		time.Sleep(p.pause)
		by = by.Add(p.pause)
	}
	return p.control.SetWriteDeadline(by)
}

func (p *pausing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// TestStreamsPause checks that a stream may pause for longer than a client may leave a part unread.
func TestStreamsPause(t *testing.T) {
	const unread = time.Second
	s := serve(t, server.Config{Deadlines: server.Deadlines{Write: unread}}, realizar.Options{})
	for _, version := range []int{1, 2} {
		h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.Config.Handler.ServeHTTP(&pausing{w, http.NewResponseController(w), unread + unread/4, 2}, r)
		}))
		h.EnableHTTP2 = version == 2
		h.StartTLS()
		resp, err := h.Client().Post(h.URL+"/v1/completions", "application/json",
			strings.NewReader(`{"model":"small","prompt":"x","stream":true,"max_tokens":4,"ignore_eos":true}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.ProtoMajor != version || !strings.Contains(string(text), "[DONE]") {
			t.Errorf("HTTP/%d: %.200s, %v", resp.ProtoMajor, text, err)
		}
		resp.Body.Close()
		h.Close()
	}
}

// TestLargeAnswers checks that a large answer is written in pieces and has the same content.
func TestLargeAnswers(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	text := strings.Repeat("hello wörld \"quoted\"\n", 10000)
	prompt, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	r := s.post("/tokenize", `{"return_token_strs":true,"prompt":`+string(prompt)+`}`)
	var got struct {
		Count   int
		Tokens  []int32
		Strings []string `json:"token_strs"`
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatal(err)
	}
	tok, err := s.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	want := tok.EncodeSpans([]tokenizer.Span{{Text: text}}, true)
	if !slices.Equal(got.Tokens, want) || got.Count != len(want) || len(got.Strings) != len(want) {
		t.Errorf("%d tokens, %d in the list, %d texts, want %d", got.Count, len(got.Tokens), len(got.Strings), len(want))
	}
	if r.header.Get("Content-Length") != "" || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("it was not written in pieces: %v", r.header)
	}
	ids, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Prompt string }
	if r := s.post("/detokenize", `{"tokens":`+string(ids)+`}`); json.Unmarshal([]byte(r.body), &back) != nil || back.Prompt != tok.Decode(want, false) {
		t.Errorf("%.100q", back.Prompt)
	}
	s.released()
}
