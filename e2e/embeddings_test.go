package e2e_test

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
)

func TestEmbeddings(t *testing.T) {
	s := serve(t)
	ids := s.tokenize(question)
	embed := func(in openai.EmbeddingNewParamsInputUnion) *openai.CreateEmbeddingResponse {
		t.Helper()
		got, err := s.client().Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: modelName, Input: in, EncodingFormat: "float"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	list := embed(openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{question, beginning, question}})
	if len(list.Data) != 3 || list.Model != modelName || list.Data[2].Index != 2 || list.Usage.PromptTokens != 2*int64(len(ids))+int64(len(s.tokenize(beginning))) {
		t.Fatalf("got %s", list.RawJSON())
	}
	a, b := list.Data[0].Embedding, list.Data[1].Embedding
	if len(a) != 64 || math.Abs(cosine(a, list.Data[2].Embedding)-1) > 1e-6 || cosine(a, b) > 0.999 {
		t.Errorf("%d numbers; the same text is at %v of itself, another one at %v", len(a), cosine(a, list.Data[2].Embedding), cosine(a, b))
	}
	if one := embed(openai.EmbeddingNewParamsInputUnion{OfString: openai.String(question)}); math.Abs(cosine(a, one.Data[0].Embedding)-1) > 1e-6 {
		t.Errorf("alone it is at %v", cosine(a, one.Data[0].Embedding))
	}
	if one := embed(openai.EmbeddingNewParamsInputUnion{OfArrayOfTokens: ids}); math.Abs(cosine(a, one.Data[0].Embedding)-1) > 1e-6 {
		t.Errorf("by ids it is at %v", cosine(a, one.Data[0].Embedding))
	}
}

// TestEmbeddingsBase64 decodes the numbers itself, as the client has no type for base64.
func TestEmbeddingsBase64(t *testing.T) {
	s := serve(t)
	p := openai.EmbeddingNewParams{Model: modelName, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(question)}}
	whole, err := s.client().Embeddings.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var raw struct{ Data []struct{ Embedding string } }
	if err := s.client().Post(t.Context(), "embeddings", map[string]any{"model": modelName, "input": question, "encoding_format": "base64"}, &raw); err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(raw.Data[0].Embedding)
	if err != nil || len(data) != 4*len(whole.Data[0].Embedding) {
		t.Fatalf("%v, %d bytes", err, len(data))
	}
	for i, want := range whole.Data[0].Embedding {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); math.Abs(float64(got)-want) > 1e-6 {
			t.Fatalf("number %d is %v, want %v", i, got, want)
		}
	}
	p.Dimensions = openai.Int(65)
	_, err = s.client().Embeddings.New(t.Context(), p)
	refusal(t, err, 400, "dimensions", "64")
	_, err = s.client().Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: modelName, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(strings.Repeat("word ", 2000))}})
	refusal(t, err, 400, "context_length_exceeded", "1024")
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}
