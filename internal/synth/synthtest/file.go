// Package synthtest writes model files of random weights for tests.
package synthtest

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/realizar/realizar/internal/synth"
)

// File writes a model of the shape s in the mix of that name, see [synth.FindMix], and returns
// its path. The file goes with the test.
func File(tb testing.TB, s *synth.Shape, mix string) string {
	tb.Helper()
	m, ok := synth.FindMix(mix)
	if !ok {
		tb.Fatalf("there is no mix %s", mix)
	}
	f, err := synth.New(s, m, 1)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), s.Name+".gguf")
	out, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(f.Write(tb.Context(), out, runtime.GOMAXPROCS(0)), out.Close()); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Deep is a shape whose layers are most of the model.
var Deep = synth.Shape{
	Name: "deep", Architecture: "llama", Layers: 12, Hidden: 256, FFN: 1024, Heads: 4, KVHeads: 1, HeadDim: 64, Vocab: 600, Context: 16384, RopeBase: 1e4, Eps: 1e-5,
}

// Mixture is a shape with experts.
var Mixture = synth.Shape{
	Name: "mixture", Architecture: "qwen3moe", Layers: 3, Hidden: 256, FFN: 256, Heads: 4, KVHeads: 1, HeadDim: 64, Vocab: 600, Context: 512,
	Experts: 16, Used: 2, ExpertFFN: 256, RopeBase: 1e4, Eps: 1e-6, QKNorm: true,
}
