package weights

import (
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// TileRows are the rows of a tile; matrices lie in the device's memory as tiles, see
// kernels/tile.cuh.
const TileRows = 16

// hasKernels says that there are kernels for matrices of format d.
func hasKernels(d tensor.DType) bool {
	return plan.InBytes(d) || d == tensor.F32 || d == tensor.F16 || d == tensor.BF16
}

// exactInF16 are formats without kernels whose values are all exact in F16.
var exactInF16 = []tensor.DType{tensor.F8_E4M3, tensor.F8_E5M2, tensor.TQ1_0}

// LaidAs is the format in which a matrix of format d lies in the device's memory: its
// own if it has kernels, or else one of floats that holds its values. Blocks of what has
// no exact F16 are rounded to it if activations are rounded too, since it takes half the
// memory.
func LaidAs(d tensor.DType, lim *plan.Limits) tensor.DType {
	switch {
	case hasKernels(d):
		return d
	case slices.Contains(exactInF16, d), d.BlockLen() > 1 && lim.Activations != tensor.F32:
		return tensor.F16
	}
	return tensor.F32
}

// A Tiling is how a matrix is cut.
type Tiling struct {
	Format     tensor.DType // in which it lies
	Rows, Cols int
	RowTiles   int
	ColTiles   int
	Bytes      int // of a tile
}

// TileOf is the shape of a format's tile: its columns, and its bytes.
func TileOf(d tensor.DType) (cols, bytes int) {
	switch d {
	case tensor.F32:
		return 32, TileRows * 32 * 4
	case tensor.F16, tensor.BF16:
		return 128, TileRows * 128 * 2
	}
	block := d.BlockBytes()
	if d == tensor.Q4_K || d == tensor.Q5_K {
		block += 4 // scales and minima of 6 bits lie in bytes
	}
	return 256, TileRows * 256 / d.BlockLen() * block
}

// TilingOf is how w is cut.
func TilingOf(w *tensor.Tensor, lim *plan.Limits) Tiling {
	format := LaidAs(w.DType, lim)
	cols, bytes := TileOf(format)
	return Tiling{
		Format: format, Rows: w.Rows(), Cols: w.Cols(), Bytes: bytes,
		RowTiles: (w.Rows() + TileRows - 1) / TileRows,
		ColTiles: (w.Cols() + cols - 1) / cols,
	}
}

// Tiles is the bytes of all tiles.
func (t *Tiling) Tiles() int { return t.RowTiles * t.ColTiles * t.Bytes }

// Scaled reports whether each row is divided by a power of two, a float32 behind the tiles.
func (t *Tiling) Scaled() bool { return plan.InBytes(t.Format) }

// Size is the bytes of the tiles and of the rows' powers of two.
func (t *Tiling) Size() int {
	if t.Scaled() {
		return t.Tiles() + 4*TileRows*t.RowTiles
	}
	return t.Tiles()
}

// RowBytes are those of a row on its way to the device.
func (t *Tiling) RowBytes() int { return t.Cols / t.Format.BlockLen() * t.Format.BlockBytes() }

// Suffix is how the names of the kernels for a format end.
func Suffix(d tensor.DType) string { return strings.ToLower(d.String()) }

// Family is the kernels for weights of a format.
func Family(d tensor.DType) string { return "weights_" + Suffix(d) }

// SeveralFamily is the kernels for several rows of the input, where there are no wide ones.
func SeveralFamily(d tensor.DType) string { return "several_" + Suffix(d) }

// WideFamily is the kernels for many rows of the input, on Hopper.
func WideFamily(d tensor.DType) string { return "wide_" + Suffix(d) }

// FloatFamily is the kernel for products of a format with float32.
func FloatFamily(d tensor.DType) string { return "floats_" + Suffix(d) }

// maxCols is the longest row: kernels for one row of the input keep it in shared memory.
const maxCols = 64 << 10

// Tileable reports whether the kernels can take a matrix of w's shape.
func Tileable(w *tensor.Tensor, lim *plan.Limits) bool {
	t := TilingOf(w, lim)
	return t.Rows > 0 && t.Cols > 0 && t.RowTiles <= math.MaxInt32 && t.Cols <= maxCols
}
