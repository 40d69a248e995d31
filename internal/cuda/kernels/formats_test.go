package kernels_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Kernels read from a format's tiles the values of the file's rows. The test compiles formats.cuh
// for the host, builds tiles of random rows, and reads them as a warp's lanes do. Operands of E4M3
// numbers are exact in rows with one scale.
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
	add := func(w *tensor.Tensor) {
		formats++
		values, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&in, w.DType, rows, cols, len(w.Data))
		in.Write(w.Data)
		if err := binary.Write(&in, binary.LittleEndian, values); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range plantest.Dtypes {
		if d.Format().Planes == nil {
			continue // laid out as floats
		}
		add(plantest.Weight(rand.New(rand.NewPCG(uint64(d), 1)), "w", d, 0.5, rows, cols))
	}
	whole := plantest.Weight(rand.New(rand.NewPCG(1, 1)), "w", tensor.F8_E4M3_32, 0.5, rows, cols)
	for b := 0; b < len(whole.Data); b += 36 {
		row := b / whole.RowBytes()
		binary.LittleEndian.PutUint32(whole.Data[b:], math.Float32bits(float32(math.Pow(0.0123, float64(1+row)))))
	}
	add(whole)
	c := exec.CommandContext(t.Context(), program)
	c.Stdin = &in
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	last := out[max(0, bytes.LastIndex(out, []byte("F8_E4M3_32: "))):]
	var operands, lines float64
	if _, err := fmt.Sscanf(string(last), "F8_E4M3_32: operands %g, lines %g from", &operands, &lines); err != nil || max(operands, lines) > 1e-7 {
		t.Errorf("rows with one scale: %s, %v", last, err)
	}
	if n := bytes.Count(out, []byte("operands")); n != formats {
		t.Errorf("%d of %d formats were compared", n, formats)
	}
}
