package anthropic_test

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
	s := serve(t, server.Config{Parallel: 1, MaxQueue: 1}, modeltest.Template(plainTemplate), modeltest.Context(16384))
	resp, err := s.Client().Post(s.URL+"/v1/messages", "application/json", strings.NewReader(body(hello+`, "stream": true, "max_tokens": 16000,
		"output_config": {"format": {"type": "json_schema", "schema": {"type": "array", "items": {"type": "boolean"}, "minItems": 2000}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK || line != "event: message_start\n" {
		t.Fatalf("%d %s: %v", resp.StatusCode, line, err)
	}
	for s.model.Metrics().Ended[realizar.Cancelled] == 0 {
		if n := s.model.Metrics().Ended; t.Context().Err() != nil || n[realizar.EndedByStop]+n[realizar.EndedByLength] > 0 {
			t.Fatalf("the answer went on that nobody read: %v", n)
		}
		runtime.Gosched()
	}
	s.post("/v1/messages", body(hello+`, "max_tokens": 1`)).whole(t)
}
