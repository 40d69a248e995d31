package realizar_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
)

// residentOf returns the bytes of a mapped file that are resident in memory.
func residentOf(t *testing.T, path string) (bytes int64) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("the system does not say what is resident: %v", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(maps)) {
		var start, end, kib int64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			within = strings.HasSuffix(strings.TrimSpace(line), path)
		} else if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 && within {
			bytes += kib << 10
		}
	}
	return bytes
}

// The file pages of repacked weights do not stay resident.
func TestOpenGivesBack(t *testing.T) {
	path := synthtest.File(t, &synth.Shape{
		Name: "wide", Architecture: "llama", Layers: 1, Hidden: 1024, FFN: 4096, Heads: 8, KVHeads: 8, HeadDim: 128, Vocab: 600, Context: 64, RopeBase: 1e4, Eps: 1e-5,
	}, "Q8_0")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	size := info.Size()
	for _, test := range []struct {
		activations realizar.Activations
		least, most int64
	}{
		{realizar.ActivationsAuto, 0, size / 4},
		{realizar.ActivationsF32, size * 3 / 4, 2 * size}, // steps read the file
	} {
		m, err := realizar.Open(t.Context(), path, realizar.Options{Activations: test.activations})
		if err != nil {
			t.Fatal(err)
		}
		if got := residentOf(t, path); got < test.least || got > test.most {
			t.Errorf("%v activations: %d bytes of a file of %d are in memory, want %d to %d", test.activations, got, size, test.least, test.most)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
