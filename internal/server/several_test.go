package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// A folder loads models by their file names.
type folder struct {
	path  string
	needs map[string]int64 // in bytes; 1 for models not listed
	each  func(name string)
}

func (f *folder) Estimate(_ context.Context, name string) (pool.Need, error) {
	n, ok := f.needs[name]
	if !ok {
		n = 1
	}
	return pool.Need{"cpu": n}, nil
}

func (f *folder) Load(ctx context.Context, name string, _ pool.Need) (*server.Model, error) {
	if f.each != nil {
		f.each(name)
	}
	m, err := realizar.Open(ctx, filepath.Join(f.path, name+".gguf"), realizar.Options{Device: "cpu"})
	if err != nil {
		return nil, err
	}
	return &server.Model{Model: m}, nil
}

// several returns a server of models a, b and c, of which two fit, and of broken and large, which
// cannot be loaded.
func several(t *testing.T, f *folder) *service {
	t.Helper()
	f.path = t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		data, err := os.ReadFile(modeltest.Llama(t, modeltest.Context(256<<i)))
		if err == nil {
			err = os.WriteFile(filepath.Join(f.path, name+".gguf"), data, 0o600)
		}
		if name == "a" && err == nil {
			err = os.WriteFile(filepath.Join(f.path, "broken.gguf"), data[:len(data)/2], 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f.needs = map[string]int64{"large": 3, "broken": 0}
	models, err := pool.New(pool.Config[*server.Model]{
		Models: []pool.Spec{{Name: "a", Aliases: []string{"first"}}, {Name: "b"}, {Name: "c"}, {Name: "broken"}, {Name: "large"}},
		Loader: f, Limits: pool.Need{"cpu": 2}, MaxWaiting: 64,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := serveModels(t, models, server.Config{})
	t.Cleanup(func() {
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// states returns the models and their states from GET /v1/models.
func (s *service) states() string {
	s.t.Helper()
	var list struct {
		Data []struct{ ID, State string }
	}
	if err := json.Unmarshal([]byte(s.get("/v1/models").body), &list); err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, m := range list.Data {
		all = append(all, m.ID+" "+m.State)
	}
	return strings.Join(all, ", ")
}

// TestSeveral checks that a request selects its model by any name, in every dialect, and that a
// model that cannot be loaded does not affect others.
func TestSeveral(t *testing.T) {
	s := several(t, new(folder))
	if got := s.states(); got != "a absent, first absent, b absent, c absent, broken absent, large absent" {
		t.Error(got)
	}
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, ask := range []struct{ path, body, says string }{
		{"/v1/completions", `{"model":"first","prompt":"hello","max_tokens":2}`, `"model":"a"`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,"model":"a"}`, `"model":"a"`},
		{"/v1/messages", `{"model":"b","max_tokens":2,"messages":[{"role":"user","content":"x"}]}`, `"model":"b"`},
		{"/api/chat", `{"model":"b:latest","stream":false}`, `"done_reason":"load"`},
		{"/api/show", `{"name":"c"}`, `context_length":1024`},
		{"/tokenize", `{"model":"b","prompt":"hello"}`, `"max_model_len":512`},
		{"/completion", `{"model":"c","prompt":"hello","n_predict":2}`, `"model":"c"`},
		{"/v1/embeddings", `{"model":"a","input":"hello","pooling":"mean"}`, `"model":"a"`},
	} {
		if r := s.post(ask.path, ask.body); r.status != 200 || !strings.Contains(r.body, ask.says) {
			t.Errorf("%s %s: %d %.300s; want %s", ask.path, ask.body, r.status, r.body, ask.says)
		}
	}
	if r := s.get("/props?model=b"); r.status != 200 || !strings.Contains(r.body, `"n_ctx":512`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	for range 2 {
		if e := s.post("/v1/completions", `{"model":"broken","prompt":"x"}`).fails(t, 503, "", "model_failed"); strings.Contains(e.Message, os.TempDir()) {
			t.Errorf("%q says where the model lies", e.Message)
		}
	}
	if e := s.post("/v1/completions", `{"model":"large","prompt":"x"}`).fails(t, 503, "", "model_memory"); !strings.Contains(e.Message, "needs 3 bytes of cpu, and all models together may take 2 bytes") {
		t.Error(e.Message)
	}
	s.post("/v1/completions", `{"model":"d","prompt":"x"}`).fails(t, 404, "model", "model_not_found")
	s.post("/v1/completions", `{"prompt":"x"}`).fails(t, 400, "model", "missing_required_parameter")
	s.post("/v1/completions", `{"prompt":"x"`).fails(t, 400, "", "invalid_json")
	s.post("/v1/completions", `{"prompt":"x","max_tokens":-2}`).fails(t, 400, "max_tokens", "invalid_value")
	if err := s.server.Models().Unload(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "b"} {
		if r := s.post("/v1/completions", `{"model":"`+name+`","prompt":"x","max_tokens":1}`); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if got := s.states(); got != "a ready, first ready, b ready, c absent, broken failed, large absent" {
		t.Error(got)
	}
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.get("/metrics"); !strings.Contains(r.body, `vllm:num_requests_running{model_name="a"} 0`) || !strings.Contains(r.body, `{model_name="b"} 0`) {
		t.Error(r.body)
	}
	var running struct{ Models []struct{ Name string } }
	if err := json.Unmarshal([]byte(s.get("/api/ps").body), &running); err != nil || len(running.Models) != 3 {
		t.Errorf("%+v (%v)", running, err)
	}
	if r := s.post("/api/generate", `{"model":"b","keep_alive":0}`); !strings.Contains(r.body, `"done_reason":"unload"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if err := s.server.Models().Unload(t.Context(), "b"); err != nil { // waits until it is unloaded
		t.Error(err)
	}
	if got := s.states(); !strings.Contains(got, "b absent") {
		t.Error(got)
	}
}

// TestSeveralAtOnce checks that many clients of several models, of which two fit, get the same
// answers as from servers of one model.
func TestSeveralAtOnce(t *testing.T) {
	s := several(t, new(folder))
	ask := func(model string, seed int) string {
		r := s.post("/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"hello world","max_tokens":8,"seed":%d,"ignore_eos":true}`, model, seed))
		var a struct {
			Model   string
			Choices []struct{ Text string }
		}
		if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != 200 || a.Model != model {
			t.Errorf("%s: %d %s", model, r.status, r.body)
			return ""
		}
		return a.Choices[0].Text
	}
	want := map[string]string{}
	for _, model := range []string{"a", "b", "c"} {
		want[model] = ask(model, 7)
	}
	var all sync.WaitGroup
	for client := range 12 {
		all.Go(func() {
			for i := range 6 {
				model := string(rune('a' + (client+i*i)%3))
				if got := ask(model, 7); got != want[model] {
					t.Errorf("%s: %q, want %q", model, got, want[model])
				}
			}
		})
	}
	all.Wait()
	used, limits := s.server.Models().Memory()
	if used["cpu"] > limits["cpu"] {
		t.Errorf("%v of %v", used, limits)
	}
}

// TestLeavingALoad checks that a client that leaves while the model is being loaded does not affect
// others.
func TestLeavingALoad(t *testing.T) {
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	s := several(t, &folder{each: func(string) {
		begun <- struct{}{}
		<-goOn
	}})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has left")
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.postWith(ctx, "/v1/completions", `{"model":"a","prompt":"x","max_tokens":1}`); !errors.Is(err, context.Canceled) && !errors.Is(err, gone) {
			t.Error(err)
		}
	})
	<-begun
	if got := s.states(); !strings.HasPrefix(got, "a loading") {
		t.Error(got)
	}
	if r := s.get("/metrics"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	cancel(gone)
	all.Wait()
	close(goOn)
	if r := s.post("/v1/completions", `{"model":"a","prompt":"x","max_tokens":1}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestModelsAPI checks that models can be loaded and unloaded by the API, and that every state is
// an event.
func TestModelsAPI(t *testing.T) {
	s := several(t, new(folder))
	for _, ask := range []struct{ path, body string }{
		{"/models/load", `{"model":"first"}`}, {"/models/load", `{"model":"b"}`}, {"/models/unload", `{"model":"a"}`}, {"/models/unload", `{"model":"c"}`},
	} {
		if r := s.post(ask.path, ask.body); r.status != 200 || r.body != `{"success":true}` {
			t.Errorf("%s %s: %d %s", ask.path, ask.body, r.status, r.body)
		}
	}
	for path, body := range map[string]string{"/models/load": `{"model":"d"}`, "/models/unload": `{"model":"d"}`} {
		s.post(path, body).fails(t, 404, "model", "model_not_found")
		s.post(path, `{}`).fails(t, 400, "model", "missing_required_parameter")
	}
	s.post("/models/load", `{"model":"broken"}`).fails(t, 503, "", "model_failed")
	var list struct {
		Data []struct {
			ID, State string
			Status    struct{ Value string }
			Memory    map[string]int64
			Loads     int
		}
		Memory map[string]struct{ Used, Limit int64 }
	}
	if err := json.Unmarshal([]byte(s.get("/models").body), &list); err != nil || len(list.Data) != 5 {
		t.Fatalf("%+v (%v)", list, err)
	}
	if m := list.Memory["cpu"]; m.Used != 1 || m.Limit != 2 {
		t.Errorf("%+v", m)
	}
	if b := list.Data[1]; b.ID != "b" || b.State != "ready" || b.Status.Value != "loaded" || b.Memory["cpu"] != 1 || b.Loads != 1 {
		t.Errorf("%+v", b)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/models/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", "2")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() (all string) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e struct {
					Number       int
					Model, State string
				}
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(e.Number, " ", e.Model, " ", e.State)
			}
		}
		return "the end"
	}
	for _, want := range []string{"3 b loading", "4 b ready", "5 a draining", "6 a absent", "7 broken loading", "8 broken failed"} {
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	s.post("/models/unload", `{"model":"b"}`)
	if got := next(); got != "9 b draining" {
		t.Error(got)
	}
	s.server.Stop()
	for range 2 {
		if got := next(); got == "the end" {
			return
		}
	}
	t.Error("the events go on after the server")
}

// TestBucketsBeforeLoad checks that the histograms of a model have all their buckets before it is
// loaded. If some appeared with the first values, the rates of the others alone would count these, and
// quantiles would be wrong.
func TestBucketsBeforeLoad(t *testing.T) {
	s := several(t, new(folder))
	buckets := func() (names []string) {
		for line := range strings.Lines(s.get("/metrics").body) {
			if name, _, ok := strings.Cut(line, "} "); ok && strings.Contains(name, `model_name="a",le="`) {
				names = append(names, name)
			}
		}
		return names
	}
	before := buckets()
	if len(before) == 0 {
		t.Fatal("there are no buckets")
	}
	if r := s.post("/v1/completions", `{"model":"a","prompt":"hello","max_tokens":3}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if diff := cmp.Diff(before, buckets()); diff != "" {
		t.Errorf("buckets (-before +after the model is loaded)\n%s", diff)
	}
}

// TestCountersSurviveUnload checks that a model's counters continue after it is loaded again, and
// are shown while it is not loaded.
func TestCountersSurviveUnload(t *testing.T) {
	s := several(t, new(folder))
	tokens := func() (n string) {
		for line := range strings.Lines(s.get("/metrics").body) {
			if value, ok := strings.CutPrefix(line, `vllm:generation_tokens_total{model_name="a"} `); ok {
				n += value
			}
		}
		return strings.TrimSpace(n)
	}
	for i, want := range []string{"3", "6", "9"} {
		if r := s.post("/v1/completions", `{"model":"a","prompt":"hello","max_tokens":3,"ignore_eos":true}`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if got := tokens(); got != want {
			t.Errorf("%d: %s tokens, want %s", i, got, want)
		}
		if r := s.post("/models/unload", `{"model":"a"}`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if got := tokens(); got != want {
			t.Errorf("%d, unloaded: %s tokens, want %s", i, got, want)
		}
	}
	if body := s.get("/metrics").body; !strings.Contains(body, `vllm:num_requests_running{model_name="c"} 0`) || !strings.Contains(body, `vllm:time_to_first_token_seconds_count{model_name="a"} 3`) {
		t.Error(body)
	}
}
