package server_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// embeddings is the answer of POST /v1/embeddings.
type embeddings struct {
	Object string
	Model  string
	Data   []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
}

func (s *service) embed(body string) (e embeddings) {
	s.t.Helper()
	r := s.post("/v1/embeddings", body)
	if r.status != 200 {
		s.t.Fatalf("%s: %d %s", body, r.status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		s.t.Fatal(err)
	}
	if e.Object != "list" || e.Model != name {
		s.t.Errorf("%s: object %q of model %q", body, e.Object, e.Model)
	}
	return e
}

func TestEmbeddings(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	texts := []string{"hello", "hello world, this is the world"}
	want, err := s.model.Embed(t.Context(), &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Text: texts[0]}, {Text: texts[1]}}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := s.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(texts))
	for i, text := range texts {
		data, err := json.Marshal(tok.Encode(text, true))
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = string(data)
	}
	for _, test := range []struct {
		input string
		want  []realizar.Embedding
	}{
		{`"hello"`, want[:1]},
		{`["hello"]`, want[:1]},
		{`["hello", "hello world, this is the world"]`, want},
		{ids[1], want[1:]},
		{"[" + ids[0] + "," + ids[1] + "]", want},
		{`["hello", ` + ids[1] + "]", want},
	} {
		for _, format := range []string{"", `, "encoding_format": "float"`, `, "encoding_format": "base64"`} {
			e := s.embed(fmt.Sprintf(`{"model": %q, "input": %s%s, "user": "u"}`, name, test.input, format))
			if len(e.Data) != len(test.want) {
				t.Fatalf("%s: %d embeddings, want %d", test.input, len(e.Data), len(test.want))
			}
			tokens := 0
			for i, d := range e.Data {
				if d.Object != "embedding" || d.Index != i {
					t.Errorf("%s: object %q of index %d at %d", test.input, d.Object, d.Index, i)
				}
				if diff := cmp.Diff(test.want[i].Vector, vector(t, d.Embedding, strings.Contains(format, "base64"))); diff != "" {
					t.Errorf("%s%s: embedding %d (-want +got)\n%s", test.input, format, i, diff)
				}
				tokens += test.want[i].Tokens
			}
			if e.Usage.Prompt != tokens || e.Usage.Total != tokens {
				t.Errorf("%s: usage %+v, want %d tokens", test.input, e.Usage, tokens)
			}
		}
	}
	var first []float32
	for _, pooling := range []string{"mean", "cls", "last", "max"} {
		v := vector(t, s.embed(`{"model": "small", "input": "hello world", "dimensions": 64, "pooling": "` + pooling + `"}`).Data[0].Embedding, false)
		if slices.Equal(v, first) {
			t.Errorf("%s pooling changes nothing", pooling)
		}
		first = v
	}
}

// vector decodes an embedding.
func vector(t *testing.T, data json.RawMessage, encoded bool) (v []float32) {
	t.Helper()
	if !encoded {
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(b) >= 4; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v
}

func TestEmbeddingsErrors(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{Context: 32})
	for _, test := range []struct {
		fields, param, code string
		status              int
	}{
		{`"model": "small"`, "input", "missing_required_parameter", 400},
		{`"model": "other", "input": "a"`, "model", "model_not_found", 404},
		{`"model": "small", "input": null`, "input", "missing_required_parameter", 400},
		{`"model": "small", "input": ""`, "input", "invalid_value", 400},
		{`"model": "small", "input": []`, "input", "invalid_value", 400},
		{`"model": "small", "input": 1`, "input", "invalid_value", 400},
		{`"model": "small", "input": ["a", ""]`, "input[1]", "invalid_value", 400},
		{`"model": "small", "input": ["a", 1]`, "input[1]", "invalid_value", 400},
		{`"model": "small", "input": [1, "a"]`, "input", "invalid_value", 400},
		{`"model": "small", "input": [1, -2]`, "input", "invalid_value", 400},
		{`"model": "small", "input": [1, null]`, "input", "invalid_value", 400},
		{`"model": "small", "input": [1.5]`, "input", "invalid_value", 400},
		{`"model": "small", "input": [[1], []]`, "input[1]", "invalid_value", 400},
		{`"model": "small", "input": [1, 1000000]`, "input", "invalid_value", 400},
		{`"model": "small", "input": [1, 3000000000]`, "input", "invalid_value", 400},
		{`"model": "small", "input": [` + strings.Repeat(`"a",`, 2048) + `"a"]`, "input", "invalid_value", 400},
		{`"model": "small", "input": "a", "encoding_format": "int8"`, "encoding_format", "invalid_value", 400},
		{`"model": "small", "input": "a", "dimensions": 100000`, "dimensions", "invalid_value", 400},
		{`"model": "small", "input": "a", "dimensions": 0`, "dimensions", "invalid_value", 400},
		{`"model": "small", "input": "a", "pooling": "least"`, "pooling", "invalid_value", 400},
		{`"model": "small", "input": "a", "truncate": true`, "truncate", "unknown_parameter", 400},
	} {
		s.post("/v1/embeddings", "{"+test.fields+"}").fails(t, test.status, test.param, test.code)
	}
	long := s.post("/v1/embeddings", `{"model": "small", "input": ["a", "`+strings.Repeat("b", 40)+`"]}`)
	if e := long.fails(t, 400, "input", "context_length_exceeded"); !strings.Contains(e.Message, "40") || !strings.Contains(e.Message, "32") {
		t.Errorf("%q does not name 40 and 32", e.Message)
	}
}

// TestEmbeddingsWithoutPooling checks that if the files define no pooling, the error names the
// field that does.
func TestEmbeddingsWithoutPooling(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Metadata("llama.pooling_type", uint32(9)))
	s.post("/v1/embeddings", `{"model": "small", "input": "a"}`).fails(t, 422, "pooling", "no_pooling")
	s.embed(`{"model": "small", "input": "a", "pooling": "mean"}`)
}
