package ollama_test

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

func TestRoot(t *testing.T) {
	s := serve(t, server.Config{})
	if r := s.send("GET", "/", ""); r.status != 200 || r.body != "Ollama is running" || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %q %q", r.status, r.body, r.header)
	}
	if r := s.send("HEAD", "/", ""); r.status != 200 || r.body != "" {
		t.Errorf("%d %q", r.status, r.body)
	}
	if r := s.send("GET", "/api/version", ""); r.status != 200 || r.body != `{"server":"realizar","version":"0.17.4"}` {
		t.Errorf("%d %q", r.status, r.body)
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := server.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Keys: keys})
	r := s.send("GET", "/api/tags", "")
	r.fails(t, 401, "Authorization: Bearer KEY")
	if r.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%v", r.header)
	}
	for key, status := range map[string]int{"sesame": 200, "other": 401} {
		q, err := http.NewRequest(http.MethodGet, s.URL+"/api/tags", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+key)
		resp, err := s.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: %d", key, resp.StatusCode)
		}
	}
}

type entry struct {
	Name, Model, Digest string
	Size                int64
	SizeVRAM            int64     `json:"size_vram"`
	Modified            time.Time `json:"modified_at"`
	Expires             time.Time `json:"expires_at"`
	Context             int       `json:"context_length"`
	Details             struct {
		Parent, Format, Family string
		Families               []string
		Parameters             string `json:"parameter_size"`
		Quantization           string `json:"quantization_level"`
	}
}

func (s *service) models(path string) []entry {
	s.t.Helper()
	var body struct{ Models []entry }
	if r := s.send("GET", path, ""); json.Unmarshal([]byte(r.body), &body) != nil || r.status != 200 {
		s.t.Fatalf("%d %s", r.status, r.body)
	}
	return body.Models
}

func TestModels(t *testing.T) {
	created := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	s := serveNamed(t, []string{"small", "b:c"}, created, server.Config{}, modeltest.Llama(t))
	d := s.model.Description()
	all, running := s.models("/api/tags"), s.models("/api/ps")
	if len(all) != 2 || len(running) != 2 || all[0].Name != "small:latest" || all[1].Model != "b:c" {
		t.Fatalf("%+v", all)
	}
	for _, e := range slices.Concat(all, running) {
		if e.Size < d.FileBytes || e.Details.Format != "gguf" || e.Details.Family != "llama" || !slices.Equal(e.Details.Families, []string{"llama"}) || len(e.Digest) != 64 || e.Digest != all[0].Digest {
			t.Errorf("%+v", e)
		}
	}
	if a, r := all[0], running[0]; !a.Modified.Equal(created) || r.Context != s.model.Context() || r.SizeVRAM != 0 || r.Expires.Before(created) {
		t.Errorf("%+v, %+v", a, r)
	}
	if other := serve(t, server.Config{}, modeltest.Context(512)).models("/api/tags")[0].Digest; other == all[0].Digest {
		t.Error("another model has the same digest")
	}
}

type shown struct {
	Modelfile, Parameters, Template, License string
	Details                                  struct{ Family string }
	Info                                     map[string]any `json:"model_info"`
	Tensors                                  []struct {
		Name, Type string
		Shape      []int
	}
	Capabilities []string
	Modified     time.Time `json:"modified_at"`
}

func (s *service) show(more string) (all shown) {
	s.t.Helper()
	if r := s.post("/api/show", `{"model":"small"`+more+`}`); json.Unmarshal([]byte(r.body), &all) != nil || r.status != 200 {
		s.t.Fatalf("%d %s", r.status, r.body)
	}
	return all
}

func TestShow(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(qwenTemplate), modeltest.Metadata("general.license", "mit"), modeltest.Metadata("test.bytes", []uint8{1, 2}),
		modeltest.Metadata("test.nan", math.NaN()))
	a := s.show("")
	if a.Template != qwenTemplate || a.License != "mit" || a.Details.Family != "llama" || !slices.Equal(a.Capabilities, []string{"completion"}) || a.Modified.IsZero() {
		t.Errorf("%+v", a)
	}
	if want := float64(s.model.Description().Dimensions.Context); a.Info["general.architecture"] != "llama" || a.Info["llama.context_length"] != want || a.Info["general.parameter_count"] == nil || a.Info["tokenizer.chat_template"] != nil {
		t.Errorf("%+v", a.Info)
	}
	if v, ok := a.Info["tokenizer.ggml.tokens"]; !ok || v != nil || a.Tensors != nil {
		t.Errorf("%v, %v", v, a.Tensors)
	}
	for _, line := range []string{"num_ctx", "temperature                    0.8", "top_k                          40", "top_p                          0.9"} {
		if !strings.Contains(a.Parameters, line) {
			t.Errorf("%q has no %q", a.Parameters, line)
		}
	}
	for _, line := range []string{"\nFROM small:latest\n", "\nPARAMETER top_k 40\n"} {
		if !strings.Contains(a.Modelfile, line) {
			t.Errorf("%q has no %q", a.Modelfile, line)
		}
	}
	long := s.show(`,"verbose":true,"system":"","template":"","options":null`)
	if tokens, ok := long.Info["tokenizer.ggml.tokens"].([]any); !ok || len(tokens) != s.model.Vocab() {
		t.Errorf("%d tokens", len(tokens))
	}
	if diff := cmp.Diff([]any{1.0, 2.0}, long.Info["test.bytes"]); diff != "" || long.Info["test.nan"] != nil {
		t.Error(diff, long.Info["test.nan"])
	}
	if d := s.model.Description(); len(long.Tensors) != d.TensorCount || long.Tensors[0].Shape[0] != d.Tensors[0].Shape[len(d.Tensors[0].Shape)-1] {
		t.Errorf("%+v", long.Tensors)
	}
	able := serve(t, server.Config{}, modeltest.Template(hermesTemplate)).show("").Capabilities
	if !slices.Equal(able, []string{"completion", "tools", "thinking"}) {
		t.Errorf("%q", able)
	}
	s = serveFile(t, server.Config{}, modeltest.Hub(t))
	if a := s.show(`,"verbose":true`); a.Info["llama.context_length"] == nil || a.Info["llama.vocab_size"] != float64(s.model.Vocab()) {
		t.Errorf("%+v", a.Info)
	}
}

func TestEncoder(t *testing.T) {
	s := serveFile(t, server.Config{}, modeltest.Encoder(t, modeltest.EncoderShape{}))
	if a := s.show(""); !slices.Equal(a.Capabilities, []string{"embedding"}) {
		t.Errorf("%q", a.Capabilities)
	}
	s.post("/api/chat", chatBody("")).fails(t, 422, "embeddings")
	s.post("/api/generate", generateBody("a", "")).fails(t, 422, "embeddings")
	long := strings.Repeat("long ", 3000)
	var cut struct {
		Count int `json:"prompt_eval_count"`
	}
	if r := s.post("/api/embed", `{"model":"small","truncate":true,"input":["a","`+long+`"]}`); r.status != 200 || json.Unmarshal([]byte(r.body), &cut) != nil || cut.Count <= s.model.Context() || cut.Count > s.model.Context()+5 {
		t.Errorf("%d %.200s", r.status, r.body)
	}
}

func TestEmbed(t *testing.T) {
	s := serve(t, server.Config{})
	all, err := s.model.Embed(t.Context(), &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Text: "hello"}, {Text: "world"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{all[0].Vector, all[1].Vector}
	get := func(body string) (got [][]float32) {
		t.Helper()
		var a struct {
			Model      string
			Embeddings [][]float32
			Total      int64 `json:"total_duration"`
			Count      int   `json:"prompt_eval_count"`
		}
		if r := s.post("/api/embed", `{"model":"small",`+body+`}`); json.Unmarshal([]byte(r.body), &a) != nil || r.status != 200 || a.Model != name || a.Total <= 0 || a.Count == 0 && len(a.Embeddings) > 0 {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
		return a.Embeddings
	}
	if diff := cmp.Diff(want, get(`"input":["hello","world"],"truncate":true,"options":{"num_ctx":16},"keep_alive":"5m"`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:1], get(`"input":"hello"`)); diff != "" {
		t.Error(diff)
	}
	if got := get(`"input":"hello","dimensions":8`); len(got) != 1 || len(got[0]) != 8 || math.Abs(length(got[0])-1) > 1e-6 || got[0][1]/got[0][0]-want[0][1]/want[0][0] > 1e-5 {
		t.Errorf("%v, the beginning of %v", got, want)
	}
	for _, none := range []string{`""`, `[]`} {
		if got := get(`"input":` + none); len(got) != 0 {
			t.Errorf("%v", got)
		}
	}
	all, err = s.model.Embed(t.Context(), &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Text: "hello"}}, KeepLength: true})
	if err != nil {
		t.Fatal(err)
	}
	var one struct{ Embedding []float32 }
	r := s.post("/api/embeddings", `{"model":"small","prompt":"hello"}`)
	if err := json.Unmarshal([]byte(r.body), &one); err != nil || !slices.Equal(one.Embedding, all[0].Vector) {
		t.Errorf("%s, want %v", r.body, all[0].Vector)
	}
	if r := s.post("/api/embeddings", `{"model":"small","prompt":""}`); r.status != 200 || r.body != `{"embedding":[]}` {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func length(v []float32) float64 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}
