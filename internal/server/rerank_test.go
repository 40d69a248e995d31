package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// reranked is the answer of POST /v1/rerank.
type reranked struct {
	Object  string
	Model   string
	Results []struct {
		Index    int
		Score    float32 `json:"relevance_score"`
		Document *struct{ Text string }
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
}

func TestRerank(t *testing.T) {
	s := serveFile(t, server.Config{}, realizar.Options{}, modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1}))
	documents := []string{"hello", "the world", "hello hello", "in", "hello"}
	want, err := s.model.Rank(t.Context(), &realizar.RankRequest{Query: "hello world", Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
	order := []int{0, 1, 2, 3, 4}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := want[a].Scores[0], want[b].Scores[0]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	tokens := 0
	for _, w := range want {
		tokens += w.Tokens
	}
	for _, test := range []struct {
		path, documents, more string
		n                     int
		returned              bool
	}{
		{"/v1/rerank", `["hello", "the world", "hello hello", "in", "hello"]`, ``, 5, false},
		{"/rerank", `["hello", {"text": "the world"}, "hello hello", {"text": "in"}, "hello"]`, `, "top_n": 9, "user": "u", "return_documents": false`, 5, false},
		{"/v1/rerank", `["hello", {"text": "the world"}, "hello hello", "in", "hello"]`, `, "top_n": 2, "return_documents": true`, 2, true},
	} {
		r := s.post(test.path, fmt.Sprintf(`{"model": %q, "query": "hello world", "documents": %s%s}`, name, test.documents, test.more))
		var got reranked
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
			t.Fatalf("%d %s (%v)", r.status, r.body, err)
		}
		if got.Object != "list" || got.Model != name || len(got.Results) != test.n || got.Usage.Prompt != tokens || got.Usage.Total != tokens {
			t.Errorf("%s: %+v, want %d results of %d tokens", test.documents, got, test.n, tokens)
		}
		for i, result := range got.Results {
			if result.Index != order[i] || result.Score != want[order[i]].Scores[0] || (result.Document != nil) != test.returned {
				t.Errorf("%s: result %d is %+v, want document %d of %v", test.documents, i, result, order[i], want[order[i]].Scores)
			}
			if test.returned && result.Document.Text != documents[order[i]] {
				t.Errorf("document %d is %q", order[i], result.Document.Text)
			}
		}
	}
}

func TestRerankErrors(t *testing.T) {
	s := serveFile(t, server.Config{}, realizar.Options{}, modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1}))
	for _, test := range []struct {
		fields, param, code string
		status              int
	}{
		{`"model": "small", "documents": ["a"]`, "query", "missing_required_parameter", 400},
		{`"model": "small", "query": "a"`, "documents", "missing_required_parameter", 400},
		{`"model": "other", "query": "a", "documents": ["a"]`, "model", "model_not_found", 404},
		{`"model": "small", "query": 1, "documents": ["a"]`, "query", "invalid_value", 400},
		{`"model": "small", "query": "a", "documents": []`, "documents", "invalid_value", 400},
		{`"model": "small", "query": "a", "documents": "a"`, "documents", "invalid_value", 400},
		{`"model": "small", "query": "a", "documents": ["a", 1]`, "documents[1]", "invalid_value", 400},
		{`"model": "small", "query": "a", "documents": ["a", {"title": "a"}]`, "documents[1].title", "unknown_parameter", 400},
		{`"model": "small", "query": "a", "documents": [{}]`, "documents[0].text", "missing_required_parameter", 400},
		{`"model": "small", "query": "a", "documents": [{"text": 1}]`, "documents[0].text", "invalid_value", 400},
		{`"model": "small", "query": "a", "documents": ["a"], "top_n": 0`, "top_n", "invalid_value", 400},
		{`"model": "small", "query": "a", "documents": ["a"], "max_chunks_per_doc": 2`, "max_chunks_per_doc", "unknown_parameter", 400},
		{`"model": "small", "query": "a", "documents": [` + strings.Repeat(`"a",`, 2048) + `"a"]`, "documents", "invalid_value", 400},
	} {
		s.post("/v1/rerank", "{"+test.fields+"}").fails(t, test.status, test.param, test.code)
	}
	long := s.post("/v1/rerank", `{"model": "small", "query": "a", "documents": ["a", "`+strings.Repeat("b", 70)+`"]}`)
	if e := long.fails(t, 400, "documents", "context_length_exceeded"); !strings.Contains(e.Message, "74") || !strings.Contains(e.Message, "64") {
		t.Errorf("%q does not name 74 and 64", e.Message)
	}
}

// TestUnsuitedModels checks that a model that an endpoint cannot use gives an error that says what
// the model is for.
func TestUnsuitedModels(t *testing.T) {
	rerank := `{"model": "small", "query": "a", "documents": ["a"]}`
	embed := `{"model": "small", "input": "hello"}`
	for name, test := range map[string]struct {
		model string
		works map[string]bool
	}{
		"a decoder":    {model: modeltest.Llama(t), works: map[string]bool{"/v1/embeddings": true, "/v1/completions": true, "/v1/chat/completions": true}},
		"an encoder":   {model: modeltest.Encoder(t, modeltest.EncoderShape{}), works: map[string]bool{"/v1/embeddings": true}},
		"a ranker":     {model: modeltest.Encoder(t, modeltest.EncoderShape{Labels: 1}), works: map[string]bool{"/v1/rerank": true}},
		"a classifier": {model: modeltest.Encoder(t, modeltest.EncoderShape{Labels: 3}), works: map[string]bool{}},
	} {
		s := serveFile(t, server.Config{}, realizar.Options{}, test.model)
		for path, body := range map[string]string{
			"/v1/rerank": rerank, "/v1/embeddings": embed,
			"/v1/completions":      `{"model": "small", "prompt": "hello", "max_tokens": 2}`,
			"/v1/chat/completions": `{"model": "small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}`,
		} {
			r := s.post(path, body)
			if test.works[path] {
				if r.status != 200 {
					t.Errorf("%s, %s: %d %s", name, path, r.status, r.body)
				}
				continue
			}
			if e := r.fails(t, 422, "", "unsuited_model"); strings.Contains(e.Message, "realizar") {
				t.Errorf("%s, %s: %q", name, path, e.Message)
			}
		}
	}
}
