//go:build gpu

package realizar_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/realizar/realizar"
	_ "github.com/realizar/realizar/cuda" // the benchmarks of this package run on a GPU
	"github.com/realizar/realizar/internal/eval"
)

// BenchmarkOpen measures opening and closing the model that REALIZAR_MODEL names.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		m, err := realizar.Open(b.Context(), os.Getenv("REALIZAR_MODEL"), realizar.Options{Device: "cuda", Parallel: 1, Context: 4096})
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// The demo model predicts a text hardly worse with activations in FP8. TEXT names the text.
func TestFloat8Perplexity(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("TEXT"))
	if err != nil {
		t.Skipf("TEXT names no text: %v", err)
	}
	perplexity := map[realizar.Activations]float64{}
	for _, a := range []realizar.Activations{realizar.ActivationsF32, realizar.ActivationsAuto, realizar.ActivationsF8} {
		m, err := realizar.Open(t.Context(), "demo/demo.gguf", realizar.Options{Device: "cuda", Activations: a})
		if err != nil {
			t.Fatal(err)
		}
		tok, err := m.Tokenizer()
		if err != nil {
			t.Fatal(err)
		}
		ids := tok.Encode(string(text), true)
		var score eval.Score
		for w := range eval.Windows(len(ids), 1024, 512) {
			part := ids[w.Begin:w.End]
			if err := m.Logits(t.Context(), part[:len(part)-1], w.From-w.Begin-1, func(i int, logits []float32) error {
				score.Add(logits, part[i+1])
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		perplexity[a] = score.Perplexity()
		fmt.Printf("%v activations: perplexity %.4f of %d tokens\n", a, score.Perplexity(), score.Tokens)
	}
	if p, want := perplexity[realizar.ActivationsF8], perplexity[realizar.ActivationsF32]; !(p < 1.1*want) {
		t.Errorf("a perplexity of %v with FP8 activations, %v with float32", p, want)
	}
}
