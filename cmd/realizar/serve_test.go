//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/modeltest"
)

// A served is a running server process.
type served struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	client *http.Client
	stdout *bufio.Reader
	log    *logLines
}

// logLines collects standard error and can be waited for.
type logLines struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote *sync.Cond
}

func newLog() *logLines {
	l := &logLines{}
	l.wrote = sync.NewCond(&l.mu)
	return l
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote.Broadcast()
	return l.text.Write(p)
}

// wait waits until the log contains text.
func (l *logLines) wait(text string) {
	l.waitFor(func(log string) bool { return strings.Contains(log, text) })
}

// waitFor waits until is returns true for the log.
func (l *logLines) waitFor(is func(log string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !is(l.text.String()) {
		l.wrote.Wait()
	}
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve starts a server on a free port and waits until it serves.
func serve(t *testing.T, model string, args ...string) *served {
	t.Helper()
	if model == "" {
		return serveAll(t, nil, args...)
	}
	return serveAll(t, []string{model}, args...)
}

// serveAll is serve with any number of models.
func serveAll(t *testing.T, models []string, args ...string) *served {
	t.Helper()
	s := &served{t: t, log: newLog(), client: &http.Client{Transport: &http.Transport{}}}
	s.cmd = exec.CommandContext(t.Context(), binary, slices.Concat([]string{"serve"}, models, []string{"--device", "cpu", "--port", "0"}, args)...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.CloseIdleConnections)
	s.stdout = bufio.NewReader(out)
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		_ = s.cmd.Wait()
		t.Fatalf("%v; standard error: %s", err, s.log)
	}
	_, url, ok := strings.Cut(strings.TrimSpace(line), " at ")
	if !ok || strings.HasSuffix(url, ":0") {
		t.Fatalf("it says %q", line)
	}
	s.url = url
	return s
}

// post posts a JSON body, with headers in pairs.
func (s *served) post(path, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.client.Do(r)
}

// status returns the status of a GET.
func (s *served) status(path string, header ...string) int {
	s.t.Helper()
	status, _ := s.get(path, header...)
	return status
}

// get returns the answer to a GET.
func (s *served) get(path string, header ...string) (status int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// signal sends a signal to the process.
func (s *served) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// exit waits for the end of the process and returns its exit code.
func (s *served) exit() int {
	s.t.Helper()
	if _, err := io.Copy(io.Discard, s.stdout); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestServe(t *testing.T) {
	s := serve(t, modeltest.Llama(t), "--served-model-name", "a", "--served-model-name", "b/c")
	resp, err := s.post("/v1/chat/completions", `{"model":"b/c","messages":[{"role":"user","content":"secret words"}],"max_tokens":4,"ignore_eos":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Model string
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Model != "a" || answer.Usage.Completion != 4 {
		t.Errorf("%+v, %v", answer, err)
	}
	for path, want := range map[string]int{"/health": 200, "/ready": 200, "/v1/models/b/c": 200, "/v1/models/x": 404} {
		if got := s.status(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
	if log := s.log.String(); !strings.Contains(log, "completion_tokens=4") || strings.Contains(log, "secret words") {
		t.Errorf("the log is %s", log)
	}
}

// TestServeDrains sends SIGTERM while many streams are running. All answers must complete, the
// stream of models' events must end at once, and new requests must be refused.
func TestServeDrains(t *testing.T) {
	const streams = 24
	s := serve(t, modeltest.Hub(t, modeltest.Context(4096)), "--served-model-name", "m", "--parallel", "4")
	var begun, ended sync.WaitGroup
	begun.Add(streams)
	errs := make(chan error, streams)
	for i := range streams {
		ended.Go(func() {
			errs <- func() error {
				resp, err := s.post("/v1/completions", fmt.Sprintf(`{"model":"m","prompt":"%d","stream":true,"max_tokens":300,"ignore_eos":true,"stream_options":{"include_usage":true}}`, i%4))
				if i < 4 || err != nil {
					begun.Done()
				}
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				data, err := io.ReadAll(resp.Body)
				if !strings.Contains(string(data), `"completion_tokens":300`) || !strings.HasSuffix(string(data), "data: [DONE]\n\n") {
					t.Errorf("status %d, a stream of %d bytes that ends with %q", resp.StatusCode, len(data), tail(data))
				}
				return err
			}()
		})
		if i >= 4 {
			begun.Done()
		}
	}
	begun.Wait()
	waitForQueue(t, s, streams)
	events, err := s.client.Get(s.url + "/models/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	s.signal(syscall.SIGTERM)
	s.log.wait("draining")
	if _, err := io.ReadAll(events.Body); err != nil {
		t.Errorf("the events of models end with %v", err)
	}
	resp, err := s.post("/v1/completions", `{"model":"m","prompt":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a request after SIGTERM: %d", resp.StatusCode)
	}
	ended.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func tail(data []byte) []byte { return data[max(0, len(data)-200):] }

// waitForQueue waits until n requests have been admitted, including those that have ended.
func waitForQueue(t *testing.T, s *served, n int) {
	t.Helper()
	for {
		resp, err := s.client.Get(s.url + "/ready")
		if err != nil {
			t.Fatal(err)
		}
		var ready struct{ Answers int }
		err = json.NewDecoder(resp.Body).Decode(&ready)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if ready.Answers+strings.Count(s.log.String(), "path=/v1/completions") >= n {
			return
		}
	}
}

// TestServeDrainTimeout checks that an answer that takes longer than --drain-timeout ends with an
// error that says so.
func TestServeDrainTimeout(t *testing.T) {
	s := serve(t, longAnswer(t), "--served-model-name", "m", "--drain-timeout", "1ms")
	resp, err := s.post("/v1/completions", `{"model":"m","prompt":"x","stream":true,"max_tokens":60000,"ignore_eos":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.signal(syscall.SIGTERM)
	data, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(tail(data)), `"code":"draining"`) {
		t.Errorf("the stream ends with %q, %v", tail(data), err)
	}
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

func TestServeSecondSignal(t *testing.T) {
	s := serve(t, longAnswer(t), "--served-model-name", "m")
	resp, err := s.post("/v1/completions", `{"model":"m","prompt":"x","stream":true,"max_tokens":60000,"ignore_eos":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.signal(os.Interrupt)
	s.log.wait("draining")
	s.signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, resp.Body)
	s.exit()
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("it ended with %v", s.cmd.ProcessState)
	}
}

// TestServeKilled checks that a killed server leaves nothing behind that prevents another from
// using its address.
func TestServeKilled(t *testing.T) {
	model := longAnswer(t)
	s := serve(t, model, "--served-model-name", "m")
	resp, err := s.post("/v1/completions", `{"model":"m","prompt":"x","stream":true,"max_tokens":60000,"ignore_eos":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.signal(syscall.SIGKILL)
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the stream of a server that was killed comes to an end")
	}
	s.exit()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	again := serve(t, model, "--port", port)
	if got := again.status("/ready"); got != 200 || again.url != s.url {
		t.Errorf("%s: %d, want %s", again.url, got, s.url)
	}
	again.signal(syscall.SIGTERM)
	if code := again.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestServePage checks that browsers get a page, unless --no-ui is set.
func TestServePage(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		args  []string
		shown int
	}{{nil, 200}, {[]string{"--no-ui"}, 404}} {
		s := serve(t, model, test.args...)
		if got := s.status("/page/licences.txt"); got != test.shown {
			t.Errorf("%q: %d", test.args, got)
		}
		// Without the page, / still answers Ollama's clients.
		if _, body := s.get("/", "Accept", "text/html"); strings.Contains(body, "<title>") != (test.shown == 200) {
			t.Errorf("%q: at / there is %s", test.args, body)
		}
	}
}

func TestServeKeys(t *testing.T) {
	keys := writeFile(t, "keys", "# of the tests\nfirst-key\n\nsecond-key\n")
	s := serve(t, modeltest.Llama(t), "--api-key-file", keys, "--log", "json")
	check := func(key string, want int) {
		t.Helper()
		if got := s.status("/v1/models", "Authorization", "Bearer "+key); got != want {
			t.Errorf("key %q: %d, want %d", key, got, want)
		}
	}
	check("first-key", 200)
	check("second-key", 200)
	check("third-key", 401)
	check("first-ke", 401)
	check("# of the tests", 401)
	if got := s.status("/v1/models"); got != 401 {
		t.Errorf("no key: %d", got)
	}
	if got := s.status("/health"); got != 200 {
		t.Errorf("/health without a key: %d", got)
	}
	rewrite := func(content, says string) {
		t.Helper()
		if err := os.WriteFile(keys, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s.signal(syscall.SIGHUP)
		s.log.wait(says)
	}
	rewrite("third-key\n", "keys were read again")
	check("third-key", 200)
	check("first-key", 401)
	rewrite("\n", "keys stay as they were")
	check("third-key", 200)
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

// writeCertificate writes a self-signed certificate with a serial number, and its key.
func writeCertificate(t *testing.T, serial int64) (certFile, keyFile string, certPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	return writeFile(t, "cert.pem", string(certPEM)), writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))), certPEM
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key, certPEM := writeCertificate(t, 1)
	s := serve(t, modeltest.Llama(t), "--served-model-name", "m", "--tls-cert", cert, "--tls-key", key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer s.client.CloseIdleConnections()
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the address is %s", s.url)
	}
	resp, err := s.post("/v1/completions", `{"model":"m","prompt":"x","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 || !strings.HasSuffix(string(data), "data: [DONE]\n\n") {
		t.Errorf("%s %q, %v", resp.Proto, data, err)
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

// TestServeOllamaPort checks that a second port, for Ollama's clients, has all endpoints, and
// refuses foreign host names, too.
func TestServeOllamaPort(t *testing.T) {
	s := serve(t, modeltest.Llama(t), "--served-model-name", "m", "--ollama-port", "0")
	line, err := s.stdout.ReadString('\n')
	_, second, ok := strings.Cut(strings.TrimSpace(line), "serving m at ")
	if err != nil || !ok || second == s.url {
		t.Fatalf("it says %q, %v", line, err)
	}
	for _, url := range []string{s.url, second} {
		for _, path := range []string{"/api/version", "/v1/models", "/ready"} {
			for host, want := range map[string]int{"": 200, "localhost": 200, "stranger.example": 403} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = host
				resp, err := s.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if resp.Body.Close(); resp.StatusCode != want {
					t.Errorf("%s%s of %q: %d, want %d", url, path, host, resp.StatusCode, want)
				}
			}
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

func TestServeFailures(t *testing.T) {
	model := modeltest.Llama(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	// The address is bound before the model is opened.
	fails(t, realizarRun(t, "serve", model, "--port", port), 1, "port "+port+" of 127.0.0.1 is in use; --port takes another one")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--ollama-port", port), 1, "is in use")
	fails(t, realizarRun(t, "serve", "/nothing", "--port", "0", "--ollama-port", "65536"), 2, "--ollama-port=65536: want 1 to 65535")
	fails(t, realizarRun(t, "serve", "/nothing", "--port", "0"), 1, "/nothing")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--api-key-file", writeFile(t, "empty", "# none\n")), 1, "has no key")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--tls-cert", "/c", "--tls-key", "/k"), 1, "/c")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--otlp-endpoint", "http://localhost:4318"), 1, "-tags otel")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--kv-events", "tcp://127.0.0.1:"+port), 1, "--kv-events", "address already in use")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--kv-events", "localhost:5557"), 1, `the address "localhost:5557"`, "tcp://127.0.0.1:5557")
	fails(t, realizarRun(t, "serve", model, "--port", "0", "--served-model-name", "a@b", "--kv-events", "tcp://127.0.0.1:0"), 1, `"a@b"`, "--served-model-name")
	fails(t, realizarRun(t, "serve", model, model, "--kv-events", "tcp://127.0.0.1:0"), 2, "serve a single model")
	fails(t, realizarRun(t, "serve", model, "--kv-events-server", "10.0.0.7:8080"), 2, "needs --kv-events")
	transfer := []string{"serve", model, "--port", "0", "--kv-host", "1MiB", "--kv-transfer-key-file"}
	good, short := writeFile(t, "key", strings.Repeat("k", 32)), writeFile(t, "short", "k")
	for _, test := range []struct {
		args   []string
		status int
		names  string
	}{
		{[]string{"serve", model, "--kv-transfer", "tcp://127.0.0.1:0", "--kv-host", "1MiB"}, 2, "--kv-transfer-key-file"},
		{[]string{"serve", model, "--kv-transfer", "tcp://127.0.0.1:0", "--kv-transfer-key-file", good}, 2, "needs --kv-host"},
		{append(transfer, good), 2, "needs --kv-transfer"},
		{[]string{"serve", model, "--kv-transfer-server", "10.0.0.7:7777"}, 2, "needs --kv-transfer"},
		{append(transfer, good, "--kv-transfer", "tcp://127.0.0.1:0", "--kv-transfer-server", "10.0.0.7"), 2, "10.0.0.7:7777"},
		{append([]string{"serve", model}, append(transfer[1:], good, "--kv-transfer", "tcp://127.0.0.1:0")...), 2, "serve a single model"},
		{append(transfer, short, "--kv-transfer", "tcp://127.0.0.1:0"), 1, "want 32"},
		{append(transfer, good, "--kv-transfer", "127.0.0.1:7777"), 1, "tcp://127.0.0.1:7777"},
		{append(transfer, good, "--kv-transfer", "tcp://127.0.0.1:"+port), 1, "address already in use"},
	} {
		fails(t, realizarRun(t, slices.Clone(test.args)...), test.status, test.names)
	}
}

// TestServeWithoutModel checks that the built-in model is served if none is named.
func TestServeWithoutModel(t *testing.T) {
	s := serve(t, "")
	resp, err := s.post("/v1/chat/completions", `{"model": "demo", "messages": [{"role": "user", "content": "What is 12 + 30?"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "42") {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
	s.signal(os.Interrupt)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestServeUnloaded checks that a model that a client unloads is loaded again for the next request.
func TestServeUnloaded(t *testing.T) {
	s := serve(t, modeltest.Llama(t), "--served-model-name", "m")
	for range 2 {
		for _, ask := range []struct{ path, body string }{
			{"/models/unload", `{"model":"m"}`}, {"/v1/completions", `{"model":"m","prompt":"hello","max_tokens":2}`},
		} {
			resp, err := s.post(ask.path, ask.body)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %d (%v)", ask.path, resp.StatusCode, err)
			}
		}
	}
	if _, body := s.get("/models"); !strings.Contains(body, `"state":"ready"`) || !strings.Contains(body, `"loads":3`) {
		t.Error(body)
	}
}
