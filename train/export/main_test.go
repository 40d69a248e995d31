package main

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// logits are those of the model at path after a few tokens.
func logits(t *testing.T, path string) (all []float32) {
	t.Helper()
	m, err := realizar.Open(t.Context(), path, realizar.Options{Device: "cpu", Activations: realizar.ActivationsF32})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode("The <|im_start|>quick fox's 12 dogs", true)
	if len(ids) < 4 {
		t.Fatalf("ids %v, want more", ids)
	}
	if _, err := m.ChatTemplate(); err != nil {
		t.Error(err)
	}
	if err := m.Logits(t.Context(), ids, 0, func(_ int, row []float32) error {
		all = append(all, row...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// What is exported is the same model, as far as its type can hold it.
func TestExport(t *testing.T) {
	folder := modeltest.Hub(t)
	want := logits(t, folder)
	// The elements of a head are added in another order, so not even F32 has the same
	// bits.
	for typ, bound := range map[string]float64{"F32": 1e-6, "F16": 1e-3, "Q8_0": 3e-2} {
		out := filepath.Join(t.TempDir(), "out.gguf")
		if err := export(folder, out, "test", typ, "gpt-2"); err != nil {
			t.Fatal(err)
		}
		got := logits(t, out)
		if len(got) != len(want) {
			t.Fatalf("%s: %d logits, want %d", typ, len(got), len(want))
		}
		var wrong, all float64
		for i, v := range want {
			wrong += float64(got[i]-v) * float64(got[i]-v)
			all += float64(v) * float64(v)
		}
		if e := math.Sqrt(wrong / all); e > bound {
			t.Errorf("%s: logits differ by %.2g, want at most %.2g", typ, e, bound)
		}
	}
	if err := export(folder, "", "test", "Q9", "gpt-2"); err == nil {
		t.Error("no error for an unknown type")
	}
	if _, err := ggufName("model.layers.3.mlp.experts.0.weight"); err == nil {
		t.Error("no error for a tensor without a place")
	}
}

// proposals answers some prompts with the head at path, and returns the answers' tokens and what was
// proposed and right.
func proposals(t *testing.T, model, head string) (tokens []int32, counts [3]uint64) {
	t.Helper()
	m, err := realizar.Open(t.Context(), model, realizar.Options{Device: "cpu", Activations: realizar.ActivationsF32, Speculative: realizar.SpeculativeEAGLE, Draft: head, SpeculativeTokens: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	for seed := range uint64(8) {
		r := &realizar.Request{Prompt: "The quick", Generation: realizar.Generation{MaxTokens: new(40), IgnoreEnd: true}}
		r.Seed, r.Temperature = seed, 0.5
		for event, err := range m.Generate(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, event.Tokens...)
		}
	}
	s := m.Metrics()
	return tokens, [3]uint64{s.Proposals, s.ProposedTokens, s.AcceptedTokens}
}

// An exported EAGLE-3 head proposes the same tokens.
func TestExportHead(t *testing.T) {
	model, folder := modeltest.Llama(t, modeltest.LastToken()), modeltest.Eagle(t, modeltest.LastToken())
	out := filepath.Join(t.TempDir(), "out.gguf")
	if err := export(folder, out, "test", "F32", ""); err != nil {
		t.Fatal(err)
	}
	want, wantCounts := proposals(t, model, folder)
	got, counts := proposals(t, model, out)
	if !slices.Equal(got, want) || counts != wantCounts || counts[2] == 0 {
		t.Errorf("proposals, their tokens and those that were right: %d, want %d, and the same answers", counts, wantCounts)
	}
}
