package server_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/internal/server/servertest"
)

// An uploading dialect answers with how much came.
type uploading struct {
	openai.Dialect
	came chan error
}

func (d uploading) Routes() []server.Route {
	return []server.Route{{Pattern: "POST /upload", Handle: func(x *server.Exchange) error {
		var n int64
		err := x.Upload(func(body io.Reader) (err error) {
			n, err = io.Copy(io.Discard, body)
			return err
		})
		d.came <- err
		if err != nil {
			return err
		}
		return x.JSON(n)
	}}}
}

// A body that a handler reads itself may be larger than others, and ends when its client
// says nothing more or has left, and when the server stops.
func TestUpload(t *testing.T) {
	d := uploading{came: make(chan error, 1)}
	h, s := servertest.Serve(t, servertest.One(t, new(realizar.Model), "a"), server.Config{
		Dialects: []server.Dialect{d}, Parallel: 1, MaxBody: 10, RequestMemory: 1 << 20, Deadlines: server.Deadlines{Body: 200 * time.Millisecond},
	})
	const size = 8 << 20
	resp, err := h.Client().Post(h.URL+"/upload", "application/octet-stream", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if resp.Body.Close(); err != nil || string(bytes.TrimSpace(text)) != "8388608" {
		t.Errorf("%d %s, %v", resp.StatusCode, text, err)
	}
	if err := <-d.came; err != nil {
		t.Error(err)
	}
	begin := func() net.Conn {
		t.Helper()
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nsome"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	silent := begin()
	defer silent.Close()
	answer, err := io.ReadAll(silent)
	if err != nil || !strings.Contains(string(answer), " 400 ") || !strings.Contains(string(answer), "body_timeout") {
		t.Errorf("%s, %v", answer, err)
	}
	if err := <-d.came; err == nil {
		t.Error("a body that did not come is there")
	}
	// Who sends a byte now and then does not stay either.
	slow := begin()
	defer slow.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case err := <-d.came:
			if ended = true; err == nil {
				t.Error("a body that comes slowly is there")
			}
		case <-tick.C:
			_, _ = slow.Write([]byte("x")) // it may be closed
		}
	}
	begin().Close()
	if err := <-d.came; err == nil {
		t.Error("a body whose client has left is there")
	}
	waits := begin()
	defer waits.Close()
	s.Stop()
	if err := <-d.came; err == nil {
		t.Error("a body that did not come is there")
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
