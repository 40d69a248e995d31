//go:build gpu

package cuda

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// eachModel runs a test with the program of each of the files that MODELS names.
func eachModel(t *testing.T, f func(t *testing.T, p *plan.Program)) {
	if os.Getenv("MODELS") == "" {
		t.Skip("MODELS names no files")
	}
	for _, path := range strings.Split(os.Getenv("MODELS"), ",") {
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
