package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A lineHandler writes the server's log for a person at a terminal, in up to 80 columns. A request
// is a line: time, method, path, status, duration, tokens and speed. Other messages wrap.
type lineHandler struct {
	mu  *sync.Mutex
	out io.Writer
}

func newLineHandler(out io.Writer) *lineHandler { return &lineHandler{new(sync.Mutex), out} }

// Enabled implements [slog.Handler].
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements [slog.Handler].
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	fields := map[string]slog.Value{}
	var rest []string
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value
		rest = append(rest, a.Key+"="+a.Value.String())
		return true
	})
	at := r.Time.Format(time.TimeOnly) + " "
	var lines []string
	if r.Message == "request" {
		lines = []string{at + strings.ReplaceAll(printable(requestLine(fields)), "\n", " ")}
	} else {
		lines = hanging(at, printable(strings.Join(append([]string{r.Message}, rest...), " ")), len(at), 80)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, strings.Join(lines, "\n")+"\n")
	return err
}

// WithAttrs implements [slog.Handler]; the server adds none.
func (h *lineHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements [slog.Handler]; the server makes none.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }

// requestLine returns the line of a request.
func requestLine(f map[string]slog.Value) string {
	took := f["duration"].Duration()
	b := fmt.Sprintf("%s %-20s %s %s", f["method"], f["path"], f["status"], shortTime(took))
	if tokens, ok := f["completion_tokens"]; ok {
		b += fmt.Sprintf("  %s + %s tokens", f["prompt_tokens"], tokens)
		if decode := f["decode"]; decode.Kind() == slog.KindDuration && decode.Duration() > 0 && tokens.Int64() > 1 {
			b += fmt.Sprintf(", %.0f tok/s", float64(tokens.Int64()-1)/decode.Duration().Seconds())
		}
	}
	if err, ok := f["error"]; ok {
		b += "  " + err.String()
	}
	return b
}

// shortTime formats a duration in microseconds, milliseconds or seconds, by its size.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(time.Second).String()
}

// introduce writes to a terminal what is served, and a command to try.
func introduce(out io.Writer, address string, s *servedSize) error {
	text := ""
	if s != nil {
		text = fmt.Sprintf("%s on %s: %d tokens of context, %d requests at a time\n", s.name, s.device, s.context, s.parallel)
	}
	_, err := fmt.Fprintf(out, `%sOpen %s in a browser, or try:

    curl %s/v1/chat/completions \
        -H 'Content-Type: application/json' \
        -d '{"messages": [{"role": "user", "content": "Hello!"}]}'

`, text, address, address)
	return err
}

// servedSize describes a server's only model.
type servedSize struct {
	name, device      string
	context, parallel int
}
