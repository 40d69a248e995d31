package measure

import (
	"math"
	"os"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/tensor"
)

// What a bench multiplies are ordinary numbers, whatever copy of the weights a launch reads, and the
// last row of the input among them: nothing is zero or infinite, which kernels may multiply faster.
// Kernels are emulated if REALIZAR_EMULATED names a folder for them.
func TestBenchMultiplies(t *testing.T) {
	if os.Getenv("REALIZAR_EMULATED") == "" {
		t.Skip("REALIZAR_EMULATED names no folder")
	}
	e := emulate.Open(t)
	d := drivertest.New(t, e.Options(1)).Driver()
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	g, err := device.Open(d, devices[0], driver.Capability{Major: 8}, e.PTX)
	if err != nil {
		t.Fatal(err)
	}
	g.Info.L2 = 20 << 10 // for a few copies
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	const input, rows, cols = 5, 40, 512
	b := NewBench(g).(*bench)
	if err := b.Begin(t.Context(), lower.Product{Format: tensor.Q4_K, Rows: rows, Cols: cols}, input); err != nil {
		t.Fatal(err)
	}
	r, err := b.Prepare(input, lower.Choice{Kernel: "linear_8"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Time(); err != nil {
		t.Fatal(err)
	}
	if len(b.launches) != 3 {
		t.Errorf("%d copies of the weights, want 3", len(b.launches))
	}
	y := b.compiler.Layout.Forms(b.scratch, b.compiler.Layout.Stages[1].Out())
	raw := make([]byte, 4*int(y.Stride)*input)
	for i := range b.launches {
		err := g.Main.Do(func() error {
			sh := lower.Shape{Tokens: input, Rows: 1}
			if err := g.Main.Memset8(y.F32, 0, len(raw)); err != nil {
				return err
			}
			if err := lower.Give(b.stream, &sh, b.launches[i]); err != nil {
				return err
			}
			if err := b.stream.Synchronize(); err != nil {
				return err
			}
			return g.Main.CopyToHost(raw, y.F32)
		})
		if err != nil {
			t.Fatal(err)
		}
		for row := range input {
			sum := 0.0
			for _, v := range device.Words[float32](raw)[row*int(y.Stride):][:rows] {
				sum += float64(v) * float64(v)
			}
			// Sums of 512 products of a weight of deviation 0.03 with a number of deviation 1.
			if size := math.Sqrt(sum / rows); !(size > 0.2 && size < 2) {
				t.Errorf("copy %d, row %d: products of size %v, want 0.68", i, row, size)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := b.End(); err != nil {
		t.Error(err)
	}
}
