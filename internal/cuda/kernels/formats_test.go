package kernels_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// Kernels read from a format's tiles the values of the file's rows. The test compiles formats.cuh
// for the host, builds tiles of random rows, and reads them as a warp's lanes do.
func TestFormatsOnHost(t *testing.T) {
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("there is no clang-19")
	}
	dir := t.TempDir()
	for to, from := range map[string]string{
		"formats.cuh": "formats.cuh", "formats.h": "formats.h", "tile.cuh": "tile.cuh",
		"device.cuh": "emulate/device.cuh", "half.cuh": "emulate/half.cuh", "machine.h": "emulate/machine.h", "main.cc": "testdata/formats_on_host.cc",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "main")
	if out, err := exec.CommandContext(t.Context(), clang, "-std=c++20", "-O1", "-ffp-contract=off", "-fno-exceptions", filepath.Join(dir, "main.cc"), "-o", program, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	const rows, cols = 16, 512
	var in bytes.Buffer
	formats := 0
	for _, d := range plantest.Dtypes {
		if !plan.InBytes(d) {
			continue // laid out as floats
		}
		formats++
		w := plantest.Weight(rand.New(rand.NewPCG(uint64(d), 1)), "w", d, 0.5, rows, cols)
		values, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&in, d, rows, cols, len(w.Data))
		in.Write(w.Data)
		if err := binary.Write(&in, binary.LittleEndian, values); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), program)
	c.Stdin = &in
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	if n := bytes.Count(out, []byte("operands")); n != formats {
		t.Errorf("%d of %d formats were compared", n, formats)
	}
}
