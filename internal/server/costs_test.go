package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// TestRefusalsAreSlowed checks that a connection with many refused requests gets all answers, but
// with increasing delays, and one with good requests gets none delayed.
func TestRefusalsAreSlowed(t *testing.T) {
	const many, free = 1000, 256
	s := serve(t, server.Config{}, realizar.Options{})
	bounds, address := listen(t, s.Config.Handler, 8, 8)
	bounds.StopTime()
	var mu sync.Mutex
	var waits []time.Duration
	bounds.WaitBy(func(_ context.Context, d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, d)
	})
	for _, test := range []struct {
		path  string
		slows int
	}{{"/health", 0}, {"/nothing", many - free}} {
		c := connect(t, address, "")
		go func() {
			_, _ = io.WriteString(c, strings.Repeat("GET "+test.path+" HTTP/1.1\r\nHost: x\r\n\r\n", many))
		}()
		answers := bufio.NewReader(c)
		for i := range many {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("%s: %d answers, %v", test.path, i, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		if len(waits) != test.slows { // all answers have come, so all delays are over
			t.Errorf("%s: %d answers waited, want %d", test.path, len(waits), test.slows)
		}
	}
	for i, d := range waits {
		if i == 0 && d != time.Second/64 || i > 0 && d < waits[i-1] || d > time.Second/4 {
			t.Errorf("answer %d waited for %v", free+i, d)
		}
	}
	if stats := bounds.Stats(); stats.Costly != 1 {
		t.Errorf("%+v", stats)
	}
}

// TestLargeRefusalsAreSlowed checks that a large request that is told to come again is told so with
// a delay, so that it does not come at once.
func TestLargeRefusalsAreSlowed(t *testing.T) {
	s := serve(t, server.Config{RequestMemory: 32 << 20}, realizar.Options{})
	bounds, address := listen(t, s.Config.Handler, 8, 8)
	waits := make(chan time.Duration, 8)
	bounds.WaitBy(func(_ context.Context, d time.Duration) { waits <- d })
	const objects = 34000 // each takes half a KiB
	large := `{"prompt":"x","chat_template_kwargs":{"a":[` + strings.Repeat("{},", objects) + `{}]}}`
	send := func(body string) net.Conn {
		return connect(t, address, fmt.Sprintf("POST /tokenize HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
	release := s.server.TakeTurns()
	first := send(large)               // it waits for its turn
	for s.server.Held() < objects<<9 { // until it has been read
		runtime.Gosched()
	}
	for _, test := range []struct {
		body, status string
		slows        int
	}{{`{"prompt":"x"}`, "200", 0}, {`{`, "400", 0}, {large, "429", 1}} {
		answer, err := io.ReadAll(send(test.body)) // or until the connection is reset, because not all was read
		if !strings.HasPrefix(string(answer), "HTTP/1.1 "+test.status) || len(waits) != test.slows {
			t.Errorf("a body of %d bytes: %.80q, %v, %d answers waited, want %s and %d", len(test.body), answer, err, len(waits), test.status, test.slows)
		}
	}
	release()
	first.Close()
	select {
	case d := <-waits:
		if d != 100*time.Millisecond {
			t.Errorf("it waited for %v", d)
		}
	default:
	}
	s.released()
}

// TestSlowedConnectionsGiveWay checks that a connection whose answer is delayed because of its
// costs is closed if another needs its place.
func TestSlowedConnectionsGiveWay(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	bounds, address := listen(t, s.Config.Handler, 1, 1)
	bounds.StopTime()
	waiting := make(chan struct{})
	bounds.WaitBy(func(ctx context.Context, _ time.Duration) {
		close(waiting)
		<-ctx.Done()
	})
	c := connect(t, address, "")
	go func() { // what follows the delayed answer is not sent, so that the server notices the close
		_, _ = io.WriteString(c, strings.Repeat("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 257))
	}()
	<-waiting
	resp, err := http.ReadResponse(bufio.NewReader(connect(t, address, healthy)), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestResetsRetireTheirConnection checks that if one user of an HTTP/2 connection cancels requests
// again and again, the connection is retired: another user's running answer completes, and that
// user's next request comes over a new connection.
func TestResetsRetireTheirConnection(t *testing.T) {
	s := serve(t, server.Config{Parallel: 4}, realizar.Options{Parallel: 4}, long)
	bounds, err := server.NewConnections(8, 8)
	if err != nil {
		t.Fatal(err)
	}
	bounds.StopTime()
	h := httptest.NewUnstartedServer(s.Config.Handler)
	h.Listener = bounds.Listen(h.Listener)
	h.Config.ConnContext = bounds.ConnContext
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	client := h.Client()
	defer client.CloseIdleConnections()
	ask := func(ctx context.Context, tokens int) (resp *http.Response, by string, err error) {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { by = local(i.Conn) }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/v1/completions",
			strings.NewReader(fmt.Sprintf(`{"model":"small","prompt":"x","stream":true,"max_tokens":%d,"ignore_eos":true}`, tokens)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err = client.Do(r)
		return resp, by, err
	}
	honestly, leave := context.WithCancel(t.Context())
	honest, first, err := ask(honestly, 60000)
	if err != nil || honest.ProtoMajor != 2 {
		t.Fatal(honest, err)
	}
	lines := make(chan string)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(lines)
		for read := bufio.NewScanner(honest.Body); read.Scan(); {
			select {
			case lines <- read.Text():
			default: // nobody reads them now
			}
		}
	})
	for taken := 0; ; taken++ {
		ctx, cancel := context.WithCancel(t.Context())
		resp, by, err := ask(ctx, 60000)
		cancel()
		if err != nil {
			t.Fatalf("request %d: %v", taken, err)
		}
		resp.Body.Close()
		if by != first {
			if taken < 256 {
				t.Errorf("the connection ended after %d", taken)
			}
			break
		}
		if taken > 5000 {
			t.Fatal("5000 requests were taken back")
		}
	}
	for range 100 {
		if line, more := <-lines; !more || strings.Contains(line, "error") {
			t.Fatalf("a stream of the connection that is to end itself ends: %q", line)
		}
	}
	leave()
	reading.Wait()
	honest.Body.Close()
	if stats := bounds.Stats(); stats.Costly != 1 || stats.Evicted != 0 {
		t.Errorf("%+v", stats)
	}
	s.idle()
}

func local(c net.Conn) string { return c.LocalAddr().String() }
