package lower

import "testing"

// Few rows have small blocks, so that all multiprocessors have some; many rows have large blocks. A
// device with little shared memory has small ones alone.
func TestFloatBlocks(t *testing.T) {
	const units = 16 // 256 rows of weights, those of a router
	for _, test := range []struct {
		shared, input int
		want          string
	}{
		{227 << 10, 1, "first"},
		{227 << 10, 2, "linear_f32_8"},
		{227 << 10, 64, "linear_f32_8"},
		{227 << 10, 512, "linear_f32_32"},
		{227 << 10, 2048, "linear_f32_64"},
		{163 << 10, 2048, "linear_f32_64"},
		{99 << 10, 2048, "linear_f32_8"},
		{48 << 10, 2048, "linear_f32_8"}, // which the device refuses
	} {
		c := &Compiler{Multiprocessors: 132, SharedPerBlock: test.shared}
		variants := c.floatVariants(variant{name: "first", rows: 1})
		if got := variants[c.chooseFloats(variants, units, test.input)].name; got != test.want {
			t.Errorf("%d rows, %d bytes of shared memory: %s, want %s", test.input, test.shared, got, test.want)
		}
	}
}
