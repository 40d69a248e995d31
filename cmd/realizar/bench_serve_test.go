package main_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// An openServer answers as OpenAI's API does, in streams. Each answer has as many words as the
// request asked for.
type openServer struct {
	url   string
	under atomic.Int64
	most  atomic.Int64
	asked atomic.Int64
	fails func(n int64) bool
	held  chan struct{} // unless nil, each answer stops after its first word and reports it here
}

func newOpenServer(t *testing.T) *openServer {
	t.Helper()
	s := &openServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"parrot","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *openServer) chat(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		Messages  []struct{ Role, Content string }
		IgnoreEOS bool `json:"ignore_eos"`
	}
	n := s.asked.Add(1)
	under := s.under.Add(1)
	defer s.under.Add(-1)
	for most := s.most.Load(); under > most && !s.most.CompareAndSwap(most, under); most = s.most.Load() {
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "parrot" || len(body.Messages) != 1 || !body.IgnoreEOS {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"cannot be read: %v"}}`, err)
		return
	}
	if s.fails != nil && s.fails(n) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"too many requests"}}`)
		return
	}
	for i := range body.MaxTokens {
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		if i == 0 && s.held != nil {
			s.held <- struct{}{}
			<-r.Context().Done()
			return
		}
	}
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n",
		len(strings.Fields(body.Messages[0].Content)), body.MaxTokens)
}

// A loadResult is the output of --json.
type loadResult struct {
	URL, Model, Endpoint         string
	Concurrency                  int
	Rate                         float64
	PromptLength                 string `json:"prompt_length"`
	Seed                         uint64
	Seconds                      float64
	Completed, Failed, Abandoned int
	Errors                       map[string]struct {
		Count int
		First string
	}
	PromptTokens int       `json:"prompt_tokens"`
	AnswerTokens int       `json:"answer_tokens"`
	AnswerRate   float64   `json:"answer_tok_s"`
	FirstToken   latencies `json:"first_token_ms"`
	InterToken   latencies `json:"inter_token_ms"`
	EndToEnd     latencies `json:"end_to_end_ms"`
	Series       struct {
		Interval     float64   `json:"interval_s"`
		AnswerTokens []float64 `json:"answer_tokens"`
	}
}

type latencies struct {
	Count                         int
	Mean, P50, P90, P95, P99, Max float64
}

func readLoad(t *testing.T, text string) loadResult {
	t.Helper()
	var r loadResult
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return r
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

func TestBenchServeJSON(t *testing.T) {
	s := newOpenServer(t)
	r := readLoad(t, output(t, "", "bench", "serve", s.url, "-c", "3", "-n", "20", "--prompt-tokens", "12", "--answer-tokens", "7",
		"--shared-prefix", "5", "--seed", "9", "--ignore-eos", "--json", "-"))
	if r.URL != s.url || r.Model != "parrot" || r.Endpoint != "chat" || r.Concurrency != 3 || r.PromptLength != "12" || r.Seed != 9 ||
		r.Completed != 20 || r.Failed != 0 || r.PromptTokens != 20*17 || r.AnswerTokens != 140 {
		t.Errorf("got %+v", r)
	}
	if s.most.Load() > 3 || s.asked.Load() != 20 {
		t.Errorf("%d requests, %d under way at most, want 20 and 3", s.asked.Load(), s.most.Load())
	}
	if math.Abs(r.AnswerRate*r.Seconds-140) > 1e-6 || math.Abs(sum(r.Series.AnswerTokens)-140) > 1e-6 {
		t.Errorf("rate %v, seconds %v, series %v", r.AnswerRate, r.Seconds, r.Series)
	}
	for name, l := range map[string]latencies{"first token": r.FirstToken, "inter-token": r.InterToken, "end to end": r.EndToEnd} {
		if want := map[bool]int{true: 120, false: 20}[name == "inter-token"]; l.Count != want {
			t.Errorf("%s: %d, want %d", name, l.Count, want)
		}
		if !(l.P50 <= l.P90 && l.P90 <= l.P95 && l.P95 <= l.P99 && l.P99 <= l.Max && l.Max > 0 && l.Mean <= l.Max) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if r.FirstToken.Max > r.EndToEnd.Max {
		t.Errorf("first token %v after the end %v", r.FirstToken.Max, r.EndToEnd.Max)
	}
}

func TestBenchServeTable(t *testing.T) {
	s := newOpenServer(t)
	s.fails = func(n int64) bool { return n%4 == 0 }
	dir := t.TempDir()
	svg, object := filepath.Join(dir, "load.svg"), filepath.Join(dir, "load.json")
	got := output(t, "", "bench", "serve", s.url+"/v1", "-n", "40", "--answer-tokens", "3", "--ignore-eos", "--rate", "400", "--svg", svg, "--json", object)
	for _, part := range []string{"requests answered     30", "answer tokens         90", "milliseconds", "first token", "inter-token", "per token", "end to end",
		"status 429        10  status 429: too many requests", "model parrot, chat: 400 requests per second, sent at most "} {
		if !strings.Contains(got, part) {
			t.Errorf("the table is without %q:\n%s", part, got)
		}
	}
	text, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	if r := readLoad(t, string(text)); r.Completed != 30 || r.Failed != 10 || r.Rate != 400 || r.Errors["status 429"].Count != 10 {
		t.Errorf("the object is %s", text)
	}
	drawing, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for in := xml.NewDecoder(strings.NewReader(string(drawing))); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the drawing is no XML: %v", err)
		}
	}
	for _, part := range []string{"<svg", "first token", "inter-token", "answer tokens", "failed", "Latency (ms, log scale)", "Cumulative share", "Throughput (tokens/s)", "Rate (requests/s)", "Time (s)"} {
		if !strings.Contains(string(drawing), part) {
			t.Errorf("the drawing is without %q", part)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("%d files are left, want 2", len(files))
	}
}

func TestBenchServeFailures(t *testing.T) {
	s := newOpenServer(t)
	s.fails = func(int64) bool { return true }
	r := realizarRun(t, "bench", "serve", s.url, "-n", "2", "--ignore-eos")
	if r.code != 1 || r.stderr != "realizar: none of 2 requests was answered: status 429: too many requests\n" || !strings.Contains(r.stdout, "requests answered") {
		t.Errorf("got %+v", r)
	}
	none := httptest.NewServer(nil)
	none.Close()
	fails(t, realizarRun(t, "bench", "serve", none.URL), 1, "no server at "+none.URL+" (", "connection refused); start one with realizar serve MODEL", "realizar bench serve URL")
	// A file that cannot be created is reported before any request is sent.
	asked := s.asked.Load()
	fails(t, realizarRun(t, "bench", "serve", s.url, "--svg", filepath.Join(t.TempDir(), "no", "x.svg")), 1, "there is no folder")
	if s.asked.Load() != asked {
		t.Error("requests were sent")
	}
}

// TestBenchServeHelp checks that bench is short for bench model, and has its help.
func TestBenchServeHelp(t *testing.T) {
	serve := output(t, "", "bench", "serve", "--help")
	if output(t, "", "help", "bench", "serve") != serve || !strings.Contains(serve, "--concurrency") || strings.Contains(serve, "--threads") || !strings.Contains(serve, "Examples:\n\n    ") {
		t.Errorf("bench serve --help is:\n%s", serve)
	}
	bench := output(t, "", "bench", "--help")
	if output(t, "", "bench", "model", "--help") != bench || !strings.Contains(bench, "realizar bench serve --help") {
		t.Errorf("bench --help is:\n%s", bench)
	}
}

// TestBenchServeSweep checks that a sweep has a row, an object and a point in the drawing for each
// load, and ends when the server refuses requests.
func TestBenchServeSweep(t *testing.T) {
	s := newOpenServer(t)
	s.fails = func(int64) bool { return s.under.Load() > 3 }
	dir := t.TempDir()
	svg, object := filepath.Join(dir, "sweep.svg"), filepath.Join(dir, "sweep.json")
	got := output(t, "", "bench", "serve", s.url, "--sweep", "concurrency:1:3", "-n", "12", "--answer-tokens", "5", "--ignore-eos",
		"--slo", "ttft=1h,itl=1ns", "--svg", svg, "--json", object)
	for _, part := range []string{"concurrency  answered  failed  ", "first token 50%", "good req/s", "0.0%", "goodput is of ttft=1h0m0s,itl=1ns"} {
		if !strings.Contains(got, part) {
			t.Errorf("the table is without %q:\n%s", part, got)
		}
	}
	var r struct {
		Sweep string
		Steps []struct {
			loadResult
			Goodput struct {
				SLO string
				Met int
			}
		}
	}
	text, err := os.ReadFile(object)
	if err != nil || json.Unmarshal(text, &r) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if r.Sweep != "concurrency" || len(r.Steps) < 2 {
		t.Fatalf("got %+v", r)
	}
	for i, step := range r.Steps {
		if step.Concurrency != []int{1, 2, 3}[i] || step.Completed != 12 || step.AnswerTokens != 60 || step.Goodput.SLO != "ttft=1h0m0s,itl=1ns" {
			t.Errorf("step %d is %+v", i, step)
		}
	}
	drawing, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"first token, 50%", "inter-token, 99%", "objective ttft=1h0m0s", "Throughput (answer tokens/s)", "Latency (ms, log scale)"} {
		if !strings.Contains(string(drawing), part) {
			t.Errorf("the drawing is without %q", part)
		}
	}
	s.fails = func(int64) bool { return s.under.Load() > 1 }
	s.held = nil
	refused := realizarRun(t, "bench", "serve", s.url, "--sweep", "rate:100000", "-n", "64", "--answer-tokens", "500", "--ignore-eos")
	if refused.code != 0 || !strings.Contains(refused.stdout, "the sweep ended at saturation: more than a tenth of the requests failed") {
		t.Errorf("got %+v", refused)
	}
}

func TestBenchServeTrace(t *testing.T) {
	s := newOpenServer(t)
	trace := filepath.Join(t.TempDir(), "azure.csv")
	if err := os.WriteFile(trace, []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,40,3\n2023-11-16 18:18:03.97,50,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := readLoad(t, output(t, "", "bench", "serve", s.url, "--trace", trace, "--trace-speed", "6000", "--ignore-eos", "--json", "-"))
	if r.Completed != 2 || r.PromptTokens != 90 || r.AnswerTokens != 7 {
		t.Errorf("got %+v", r)
	}
	fails(t, realizarRun(t, "bench", "serve", s.url, "--trace", trace, "--rate", "1"), 2, "--trace")
	fails(t, realizarRun(t, "bench", "serve", s.url, "--sweep", "rate", "--rate", "1"), 2, "--sweep")
	fails(t, realizarRun(t, "bench", "serve", s.url, "--sweep", "speed"), 2, "speed", "want concurrency or rate")
	fails(t, realizarRun(t, "bench", "serve", s.url, "--slo", "ttft"), 2, "want times such as")
	fails(t, realizarRun(t, "bench", "serve", s.url, "--trace", trace+"x"), 1, "azure.csvx")
}
