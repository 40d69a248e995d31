package cuda

import (
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Matrices lie in the device's memory as tiles of 16 rows, see kernels/tile.cuh.
const tileRows = 16

// hasKernels says that there are kernels for matrices of format d.
func hasKernels(d tensor.DType) bool {
	return plan.InBytes(d) || d == tensor.F32 || d == tensor.F16 || d == tensor.BF16
}

// exactInF16 are formats without kernels whose values are all exact in F16.
var exactInF16 = []tensor.DType{tensor.F8_E4M3, tensor.F8_E5M2, tensor.TQ1_0}

// laidAs is the format in which a matrix of format d lies in the device's memory: its
// own if it has kernels, or else one of floats that holds its values. Blocks of what has
// no exact F16 are rounded to it if activations are rounded too, since it takes half the
// memory.
func laidAs(d tensor.DType, lim *plan.Limits) tensor.DType {
	switch {
	case hasKernels(d):
		return d
	case slices.Contains(exactInF16, d), d.BlockLen() > 1 && lim.Activations == tensor.Q8_0:
		return tensor.F16
	}
	return tensor.F32
}

// A tiling is how a matrix is cut.
type tiling struct {
	format     tensor.DType // in which it lies
	rows, cols int
	rowTiles   int
	colTiles   int
	bytes      int // of a tile
}

// tileOf is the shape of a format's tile: its columns, and its bytes.
func tileOf(d tensor.DType) (cols, bytes int) {
	switch d {
	case tensor.F32:
		return 32, tileRows * 32 * 4
	case tensor.F16, tensor.BF16:
		return 128, tileRows * 128 * 2
	}
	return 256, tileRows * 256 / d.BlockLen() * d.BlockBytes()
}

func tilingOf(w *tensor.Tensor, lim *plan.Limits) tiling {
	format := laidAs(w.DType, lim)
	cols, bytes := tileOf(format)
	return tiling{
		format: format, rows: w.Rows(), cols: w.Cols(), bytes: bytes,
		rowTiles: (w.Rows() + tileRows - 1) / tileRows,
		colTiles: (w.Cols() + cols - 1) / cols,
	}
}

func (t *tiling) size() int { return t.rowTiles * t.colTiles * t.bytes }

// rowBytes are those of a row on its way to the device.
func (t *tiling) rowBytes() int { return t.cols / t.format.BlockLen() * t.format.BlockBytes() }

// suffix is how the names of the kernels for a format end.
func suffix(d tensor.DType) string { return strings.ToLower(d.String()) }

// family is the kernels for weights of a format.
func family(d tensor.DType) string { return "weights_" + suffix(d) }

// floatFamily is the kernel for products of a format with float32.
func floatFamily(d tensor.DType) string { return "floats_" + suffix(d) }

// tileable reports whether the kernels can take a matrix of w's shape.
func tileable(w *tensor.Tensor, lim *plan.Limits) bool {
	t := tilingOf(w, lim)
	return t.rows > 0 && t.cols > 0 && t.rowTiles <= math.MaxInt32 && t.cols <= math.MaxInt32/4
}
