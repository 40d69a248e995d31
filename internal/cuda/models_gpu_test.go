//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/modelfile"
)

// eachModel runs a test with the program of each file that MODELS names. SHAPE:MIX names a model of
// random weights, which is generated in the temporary folder and kept there.
func eachModel(t *testing.T, f func(t *testing.T, p *plan.Program)) {
	if os.Getenv("MODELS") == "" {
		t.Skip("MODELS names no files")
	}
	for _, path := range strings.Split(os.Getenv("MODELS"), ",") {
		if shape, mix, ok := strings.Cut(path, ":"); ok {
			path = makeModel(t, shape, mix)
		}
		file, err := modelfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Build(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(path)
		f(t, m.Program)
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// makeModel returns the path of a model of random weights.
func makeModel(t *testing.T, shape, mix string) string {
	t.Helper()
	path := filepath.Join(os.TempDir(), shape+"."+mix+".gguf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	s, ok := synth.FindShape(shape)
	m, known := synth.FindMix(mix)
	if !ok || !known {
		t.Fatalf("no shape %q with mix %q", shape, mix)
	}
	model, err := synth.New(s, m, 1)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path + ".part")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(model.Write(t.Context(), file, runtime.NumCPU()), file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		t.Fatal(err)
	}
	return path
}
