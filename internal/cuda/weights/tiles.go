package weights

import (
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// TileRows is the number of rows in a tile. kernels/tile.cuh describes the layout of matrices as
// tiles.
const TileRows = 16

// hasKernels reports whether there are kernels for matrices of format d. Blocks of E4M3 numbers have
// them for activations of 16 bits only, because tiles have their scales in float16.
func hasKernels(d tensor.DType, lim *plan.Limits) bool {
	switch d {
	case tensor.F32, tensor.F16, tensor.BF16:
		return true
	}
	f := d.Format()
	return f.Planes != nil && (!f.E4M3 || lim.Activations != tensor.F32)
}

// exactInF16 are formats without kernels whose values F16 represents exactly.
var exactInF16 = []tensor.DType{tensor.F8_E4M3, tensor.F8_E5M2, tensor.TQ1_0}

// LaidAs returns the format in which a matrix of format d is stored on the device: d if it has
// kernels, or else a float format that holds its values. Block formats whose values are not exact
// in F16 are rounded to it if activations are rounded too, because it takes half the memory of F32.
func LaidAs(d tensor.DType, lim *plan.Limits) tensor.DType {
	switch {
	case hasKernels(d, lim):
		return d
	case slices.Contains(exactInF16, d), d.BlockLen() > 1 && lim.Activations != tensor.F32:
		return tensor.F16
	}
	return tensor.F32
}

// A Tiling describes how a matrix is cut into tiles.
type Tiling struct {
	Format     tensor.DType // format on the device
	Rows, Cols int
	RowTiles   int
	ColTiles   int
	Bytes      int  // of a tile
	Whole      int  // columns of the rows in which the matrix is copied to the device; see [tensor.Tensor.Whole]
	First      int  // the matrix's first column in such a row
	Float8     bool // products may compute with activations in E4M3
}

// TileOf returns the columns and bytes of a tile of format d.
func TileOf(d tensor.DType) (cols, bytes int) {
	switch d {
	case tensor.F32:
		return 32, TileRows * 32 * 4
	case tensor.F16, tensor.BF16:
		return 128, TileRows * 128 * 2
	}
	block := d.BlockBytes()
	switch d {
	case tensor.Q4_K, tensor.Q5_K:
		block += 4 // scales and minima of 6 bits are stored as bytes
	case tensor.F8_E4M3_32:
		block -= 2 // scales are float16
	}
	return 256, TileRows * 256 / d.BlockLen() * block
}

// TilingOf returns the tiling of w.
func TilingOf(w *tensor.Tensor, lim *plan.Limits) Tiling {
	format := LaidAs(w.DType, lim)
	cols, bytes := TileOf(format)
	whole, first := w.Whole()
	return Tiling{
		Whole: whole.Cols(), First: first,
		Format: format, Rows: w.Rows(), Cols: w.Cols(), Bytes: bytes,
		RowTiles: (w.Rows() + TileRows - 1) / TileRows,
		ColTiles: (w.Cols() + cols - 1) / cols,
		Float8:   lim.Activations == tensor.F8_E4M3 && slices.Contains(inFloat8, format),
	}
}

// inFloat8 are the formats with kernels for activations in E4M3.
var inFloat8 = []tensor.DType{tensor.F16, tensor.BF16, tensor.F8_E4M3_32, tensor.Q8_0, tensor.Q2_K, tensor.Q3_K, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K}

// Tiles returns the size of all tiles, in bytes.
func (t *Tiling) Tiles() int { return t.RowTiles * t.ColTiles * t.Bytes }

// Scaled reports whether each row is divided by a number, stored as a float32 after the tiles.
func (t *Tiling) Scaled() bool { return t.Format.Quantized() }

// Fits returns the offset in bytes of the rows' fits, which [Tiling.Float8] needs; see
// kernels/float8.cuh. They follow the rows' divisors.
func (t *Tiling) Fits() int {
	if t.Scaled() {
		return t.Tiles() + 4*TileRows*t.RowTiles
	}
	return t.Tiles()
}

// FitBytes is the size of the fit of a row.
const FitBytes = 8

// Size returns the size in bytes of the tiles, the rows' divisors and their fits.
func (t *Tiling) Size() int {
	if t.Float8 {
		return t.Fits() + FitBytes*TileRows*t.RowTiles
	}
	return t.Fits()
}

// RowBytes returns the size in bytes of a row in the format on the device.
func (t *Tiling) RowBytes() int { return t.bytesOf(t.Cols) }

// copiedBytes returns the size in bytes of a row as it is copied to the device. A matrix of some
// columns is copied with all of them, because a row's divisor depends on all.
func (t *Tiling) copiedBytes() int { return t.bytesOf(t.Whole) }

func (t *Tiling) bytesOf(cols int) int { return cols / t.Format.BlockLen() * t.Format.BlockBytes() }

// Suffix returns the suffix of the names of a format's kernels.
func Suffix(d tensor.DType) string { return strings.ToLower(d.String()) }

// Family returns the name of the family of kernels for weights of a format.
func Family(d tensor.DType) string { return "weights_" + Suffix(d) }

// Mixed are the pairs of formats with a kernel for products of one input in both of them, for one
// row of the input. Files in Q4_K_M and Q5_K_M have such queries, keys and values.
var Mixed = [][2]tensor.DType{{tensor.Q4_K, tensor.Q6_K}, {tensor.Q5_K, tensor.Q6_K}}

// MixedFamily returns the name of the family with that kernel.
func MixedFamily(a, b tensor.DType) string { return "mixed_" + Suffix(a) + "_" + Suffix(b) }

// SeveralFamily returns the family of kernels for several rows of input, used if there are no wide
// kernels.
func SeveralFamily(d tensor.DType) string { return "several_" + Suffix(d) }

// WideFamily returns the family of kernels for many rows of input, on Hopper.
func WideFamily(d tensor.DType) string { return "wide_" + Suffix(d) }

// Float8Family returns the family of kernels for activations in E4M3, on Hopper.
func Float8Family(d tensor.DType) string { return "wide_float8_" + Suffix(d) }

// FloatFamily returns the family of the kernel for products of a format with float32.
func FloatFamily(d tensor.DType) string { return "floats_" + Suffix(d) }

// maxCols is the maximum row length. Kernels for one row of input keep it in shared memory.
const maxCols = 64 << 10

// Tileable reports whether the kernels support a matrix of w's shape.
func Tileable(w *tensor.Tensor, lim *plan.Limits) bool {
	t := TilingOf(w, lim)
	return t.Rows > 0 && t.Cols > 0 && t.RowTiles <= math.MaxInt32 && t.Cols <= maxCols
}
