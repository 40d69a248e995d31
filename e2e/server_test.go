// Package e2e_test runs clients of OpenAI's, Anthropic's and Ollama's APIs against
// `realizar serve`, a process of its own on the small model of the tests. What an answer has
// to say comes from `realizar run`, which knows nothing of the server.
package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	model     = "../testdata/babble.gguf"
	modelName = "babble"
	key       = "open-sesame"
)

// command is the binary: that of REALIZAR_BINARY, or one built for these tests.
var command string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	if command = os.Getenv("REALIZAR_BINARY"); command != "" {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "realizar-e2e")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is the system's folder for such files
	command = filepath.Join(dir, "realizar")
	build := exec.Command("go", "build", "-tags", "nocuda", "-o", command, "./cmd/realizar")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// A server is a process that serves.
type server struct {
	t   *testing.T
	url string
	cmd *exec.Cmd
	log *lockedBuffer
}

// A lockedBuffer is a text that is written while it may be read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var address = regexp.MustCompile(`http://\S+`)

// serve starts a server that asks for the key. When the test ends it is told to stop,
// and must leave with 0.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	return serveModel(t, model, args...)
}

// serveModel is serve of another model, under the same name.
func serveModel(t *testing.T, model string, args ...string) *server {
	t.Helper()
	return start(t, append([]string{model, "--served-model-name", modelName}, args...)...)
}

// demo is the model in the program, which calls tools and writes JSON.
const demo = "demo"

// serveDemo is serve with that model.
func serveDemo(t *testing.T, args ...string) *server {
	t.Helper()
	return start(t, append([]string{demo}, args...)...)
}

func start(t *testing.T, args ...string) *server {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startOpen(t, append([]string{"--api-key-file", keys}, args...)...)
}

// startOpen starts a server that asks for no key but where args have it.
func startOpen(t *testing.T, args ...string) *server {
	t.Helper()
	args = append([]string{"serve", "--device", "cpu", "--port", "0"}, args...)
	s := &server{t: t, cmd: exec.Command(command, args...), log: &lockedBuffer{}}
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if s.url = address.FindString(line); err != nil || s.url == "" {
		t.Fatalf("the server says %q, %v, and no address; its log:\n%s", line, err, s.log)
	}
	return s
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server leaves with %d; its log:\n%s", code, s.log)
	}
}

// client asks the server, and no second time where that fails.
func (s *server) client(options ...option.RequestOption) *openai.Client {
	c := openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(s.url + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0),
	}, options...)...)
	return &c
}

// get is what the server says at an address that is no part of OpenAI's API.
func (s *server) get(path string) string {
	s.t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: status %d, %v, %s", path, r.StatusCode, err, text)
	}
	return string(text)
}

// post is the status of the server's answer to a request that bears no key.
func (s *server) post(path, body string) int {
	r, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		s.t.Error(err)
	}
	return r.StatusCode
}

// tokenize is what the server takes a text for.
func (s *server) tokenize(text string) []int64 {
	s.t.Helper()
	var answer struct{ Tokens []int64 }
	c := s.client(option.WithBaseURL(s.url))
	if err := c.Post(s.t.Context(), "/tokenize", map[string]any{"prompt": text}, &answer); err != nil {
		s.t.Fatal(err)
	}
	return answer.Tokens
}

// An oracle is an answer of `realizar run`.
type oracle struct {
	Text         string
	Tokens       []int64
	FinishReason string `json:"finish_reason"`
	Usage        struct {
		Prompt int64 `json:"prompt_tokens"`
		Answer int64 `json:"completion_tokens"`
	}
}

// run is what the model answers without a server, by the likeliest tokens.
func run(t *testing.T, prompt string, args ...string) oracle {
	t.Helper()
	cmd := exec.Command(command, append([]string{"run", model, prompt, "--device", "cpu", "--json", "--temperature", "0"}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("realizar run: %v: %s", err, exit.Stderr)
	}
	var o oracle
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("realizar run: %v in %s", err, out)
	}
	if strings.TrimSpace(o.Text) == "" {
		t.Fatalf("realizar run: %s has no text to compare with", out)
	}
	return o
}
