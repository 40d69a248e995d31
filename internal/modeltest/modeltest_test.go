package modeltest_test

import (
	"bytes"
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

func logits(t *testing.T, path string, ids []int32) []float32 {
	t.Helper()
	m, err := realizar.Open(t.Context(), path, realizar.Options{Activations: realizar.ActivationsF32})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	var all []float32
	err = m.Logits(context.Background(), ids, 0, func(_ int, logits []float32) error {
		all = append(all, logits...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The two layouts hold the same model, whatever the options.
func TestLayoutsAgree(t *testing.T) {
	var ids []int32
	for i := range int32(60) {
		ids = append(ids, i*i%272)
	}
	for name, options := range map[string][]modeltest.Option{
		"plain":  nil,
		"all":    {modeltest.HeadDim(24), modeltest.Window(20), modeltest.Tied(), modeltest.Seed(7)},
		"F16":    {modeltest.DType(tensor.F16)},
		"BF16":   {modeltest.DType(tensor.BF16)},
		"biases": {modeltest.Biases()},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := logits(t, modeltest.Llama(t, options...), ids), logits(t, modeltest.Hub(t, options...), ids)
			if len(got) != len(want) {
				t.Fatalf("%d and %d logits", len(got), len(want))
			}
			for i, w := range want {
				if math.Abs(float64(got[i]-w)) > 1e-4 {
					t.Fatalf("logit %d is %v in GGUF, %v in a hub's files", i, got[i], w)
				}
			}
		})
	}
}

// Q8_0 is near what it was made from.
func TestQuantized(t *testing.T) {
	ids := []int32{1, 50, 200}
	got, want := logits(t, modeltest.Llama(t, modeltest.DType(tensor.Q8_0)), ids), logits(t, modeltest.Llama(t), ids)
	var diff, norm float64
	for i, w := range want {
		diff += float64(got[i]-w) * float64(got[i]-w)
		norm += float64(w) * float64(w)
	}
	if e := math.Sqrt(diff / norm); e == 0 || e > 0.05 {
		t.Errorf("relative error %g, want a small one", e)
	}
}

var update = flag.Bool("update", false, "write the file of babble anew")

// The model in the repository's testdata is the one that this package makes.
func TestBabble(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "babble.gguf")
	made := modeltest.Babble(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, made) {
		t.Errorf("%s is not what this package makes; if it should be, run the test with -update", path)
	}
}
