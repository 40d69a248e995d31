package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
)

// TestOllamaFields checks that the client's types have all fields of the answers.
func TestOllamaFields(t *testing.T) {
	s := serveModel(t, demo)
	const ask = `"model":"babble","options":{"temperature":0,"num_predict":60}`
	const tool = `"tools":[{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]`
	for _, test := range []struct {
		path, body string
		into       func() any
	}{
		{"/api/chat", `{` + ask + `,"logprobs":true,"top_logprobs":2,"messages":[{"role":"user","content":"hello"}]}`, func() any { return new(api.ChatResponse) }},
		{"/api/chat", `{` + ask + `,"messages":[{"role":"user","content":"what is the weather in Oslo?"}],` + tool + `}`, func() any { return new(api.ChatResponse) }},
		{"/api/chat", `{` + ask + `,"stream":false,"messages":[{"role":"user","content":"what is the weather in Oslo?"}],` + tool + `}`, func() any { return new(api.ChatResponse) }},
		{"/api/generate", `{` + ask + `,"logprobs":true,"prompt":"hello"}`, func() any { return new(api.GenerateResponse) }},
		{"/api/generate", `{"model":"babble"}`, func() any { return new(api.GenerateResponse) }},
		{"/api/embed", `{"model":"babble","input":["a","b"]}`, func() any { return new(api.EmbedResponse) }},
		{"/api/embeddings", `{"model":"babble","prompt":"a"}`, func() any { return new(api.EmbeddingResponse) }},
		{"/api/show", `{"model":"babble","verbose":true}`, func() any { return new(api.ShowResponse) }},
		{"/api/tags", ``, func() any { return new(api.ListResponse) }},
		{"/api/ps", ``, func() any { return new(api.ProcessResponse) }},
		{"/api/pull", `{"model":"babble"}`, func() any { return new(api.ProgressResponse) }},
	} {
		method := http.MethodPost
		if test.body == "" {
			method = http.MethodGet
		}
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: keyed{key}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close() //nolint:errcheck // it was read to its end
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s (%v)", test.path, test.body, resp.StatusCode, data, err)
		}
		values := 0
		for d := json.NewDecoder(bytes.NewReader(data)); d.More(); values++ {
			d.DisallowUnknownFields()
			if err := d.Decode(test.into()); err != nil {
				t.Errorf("%s %s: %v in\n%s", test.path, test.body, err, data)
				break
			}
		}
		if values == 0 {
			t.Errorf("%s %s: nothing came", test.path, test.body)
		}
	}
}
