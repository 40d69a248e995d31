package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestRequestLines checks that the lines fit 80 columns, and that those of requests have the speed
// of the answer.
func TestRequestLines(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newLineHandler(&out))
	common := []any{"request_id", "req-1", "method", "POST", "path", "/v1/chat/completions", "bytes", 405, "client", "127.0.0.1:5"}
	log.Info("request", append(common, "status", 200, slog.Duration("duration", 1234*time.Millisecond), "prompt_tokens", 1900, "cached_tokens", 0, "completion_tokens", 101, slog.Duration("decode", 2*time.Second))...)
	log.Info("request", append(common, "status", 404, slog.Duration("duration", 226*time.Microsecond), "error", "model_not_found: model")...)
	log.Debug("request", common...)
	log.Error("the model fails", "error", errors.New("two\nlines"))
	log.Info("limits", "memory", "23.5 GiB", "free", "22.5 GiB", "limit", "the machine", "model", "69.7 MiB", "requests", "4.0 GiB")
	want := `POST /v1/chat/completions 200 1234 ms  1900 + 101 tokens, 50 tok/s
POST /v1/chat/completions 404 226 us  model_not_found: model
the model fails error=two lines
limits memory=23.5 GiB free=22.5 GiB limit=the machine model=69.7 MiB
requests=4.0 GiB
`
	var got strings.Builder
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 {
			t.Errorf("a line of %d columns: %s", len(line)-1, line)
		}
		got.WriteString(line[len("15:04:05 "):])
	}
	if got.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", got.String(), want)
	}
	out.Reset()
	if err := introduce(&out, "http://127.0.0.1:8080", &servedSize{"small", "cpu", 4096, 16}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "small on cpu: 4096 tokens of context, 16 requests at a time\nOpen http://127.0.0.1:8080 in a browser") || !strings.Contains(text, "\n    curl http://127.0.0.1:8080/v1/chat/completions ") {
		t.Error(text)
	}
}
