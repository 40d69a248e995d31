package ollama_test

import (
	"bufio"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// TestLeft checks that an answer ends and frees its place when the client leaves the stream.
func TestLeft(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Context(16384))
	const long = `"format":{"type":"array","items":{"type":"boolean"},"minItems":2000}`
	for i, body := range []string{chatBody(long), `{"model":"small","prompt":"hello",` + long + `}`} {
		resp, err := s.Client().Post(s.URL+[]string{"/api/chat", "/api/generate"}[i], "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(line, `"done":false`) {
			t.Fatalf("%d %s: %v", resp.StatusCode, line, err)
		}
		for s.model.Metrics().Ended[realizar.Cancelled] <= uint64(i) {
			if n := s.model.Metrics().Ended; t.Context().Err() != nil || n[realizar.EndedByStop]+n[realizar.EndedByLength] > 0 {
				t.Fatalf("the answer went on that nobody read: %v", n)
			}
			runtime.Gosched()
		}
	}
	s.post("/api/chat", chatBody(`"stream":false,"options":{"num_predict":3}`)).whole(t)
}
