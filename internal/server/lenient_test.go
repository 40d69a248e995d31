package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// A shared buffer is one that several goroutines write to.
type shared struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// A lenient server answers as if fields that it does not know were not there, and names
// them; all else is an error as before.
func TestLenient(t *testing.T) {
	log := &shared{}
	s := serve(t, server.Config{Lenient: true, Logger: slog.New(slog.NewTextHandler(log, nil))}, realizar.Options{}, modeltest.Template(toolTemplate))
	const plain = `{"messages":[{"role":"user","content":"hi"}],"temperature":0,"seed":1,"max_tokens":4}`
	text := func(r reply) string {
		_, rest, _ := strings.Cut(r.body, `"choices":`)
		return rest
	}
	want := s.post("/v1/chat/completions", plain)
	if want.status != 200 || want.header.Get("X-Left-Out") != "" {
		t.Fatalf("%d %s", want.status, want.body)
	}
	got := s.post("/v1/chat/completions", `{"magic":{"a":1},"messages":[{"idd":"m","role":"user","content":[{"type":"text","text":"hi","x.y":[]}]}],"temperature":0,"seed":1,"max_tokens":4,"the\nend":1}`)
	const left = "magic, messages[0].idd, messages[0].content[0].x.y, the?end"
	if got.status != 200 || got.header.Get("X-Left-Out") != left || text(got) != text(want) {
		t.Errorf("%d %s, left out are %q; want %s without %q", got.status, got.body, got.header.Get("X-Left-Out"), want.body, left)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "messages[0].idd") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	s.post("/v1/chat/completions", strings.Replace(plain, `"seed":1`, `"seed":"x","magic":1`, 1)).fails(t, 400, "seed", "invalid_value")
	s.post("/v1/chat/completions", strings.Replace(plain, `"seed":1`, `"verbosity":"low"`, 1)).fails(t, 400, "verbosity", "unsupported_parameter")
	s.post("/v1/chat/completions", strings.Replace(plain, `"seed":1`, `"magic":1,"magic":1`, 1)).fails(t, 400, "magic", "unknown_parameter")
	if r := s.post("/v1/chat/completions", strings.Replace(plain, `"seed":1`, `"`+strings.Repeat("a", 200)+`":1`, 1)); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}

	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `"unknown%d":%d,`, i, i)
	}
	r := s.post("/v1/chat/completions", "{"+many.String()+plain[1:])
	if named := strings.Count(r.header.Get("X-Left-Out"), ", "); r.status != 200 || named != 16 || text(r) != text(want) {
		t.Errorf("%d %s with %d names", r.status, r.body, named)
	}
	// A large body is not read for each of many.
	r = s.post("/v1/chat/completions", "{"+many.String()+strings.Replace(plain, "hi", strings.Repeat("a", 2<<20), 1)[1:])
	r.fails(t, 400, "unknown128", "unknown_parameter")
}
