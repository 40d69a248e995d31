package lower

import (
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// A launch asks for the smallest size of shared memory that holds its blocks on a multiprocessor: no
// more than fit by threads and registers, and no more than its share of the grid.
func TestCarveout(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		name                               string
		blocks, threads, registers, shared int
		declared                           int
		want                               int // KiB; 0: the driver chooses
	}{
		{"no shared memory", 1000, 256, 32, 0, 0, 32},
		{"one block of the grid for each multiprocessor", 128, 256, 120, 64 * kib, 16 * kib, 100},
		{"two", 192, 256, 120, 64 * kib, 16 * kib, 164},
		{"two by registers, of a larger grid", 4000, 256, 128, 64 * kib, 16 * kib, 164},
		{"one by registers", 4000, 256, 129, 64 * kib, 16 * kib, 100},
		{"four by threads", 4000, 512, 32, 0, 15 * kib, 64},
		{"32 blocks", 100000, 32, 8, 0, 5 * kib, 196},
		{"more than there is", 100000, 32, 8, 0, 9 * kib, 228},
		{"a block in three dimensions", 132 * 2, 8 * 8, 8, 0, 20 * kib, 64},
		{"a large block", 132, 256, 128, 80 * kib, 9 * kib, 0},
		{"the largest that is not", 132, 256, 128, 80 * kib, 9*kib - 1, 100},
	} {
		config := driver.LaunchConfig{Grid: driver.Dim3{X: c.blocks / 4, Y: 2, Z: 2}, Block: driver.Dim3{X: c.threads}, Shared: c.shared}
		if c.blocks%4 != 0 {
			config.Grid = driver.Dim3{X: c.blocks}
		}
		got := carveout(&config, driver.FunctionAttributes{SharedBytes: c.declared, Registers: c.registers}, 132)
		if want := (100*c.want + 227) / 228; got != want {
			t.Errorf("%s: %d%%, want %d%% for %d KiB", c.name, got, want, c.want)
		}
	}
}
