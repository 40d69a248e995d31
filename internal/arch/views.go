package arch

import (
	"encoding/binary"
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// A strided is a source of rows of unquantized numbers at fixed distances in another tensor, such
// as its transpose or every second row.
type strided struct {
	of                  *tensor.Tensor
	first, byRow, byCol int // elements before the first one, between rows, between columns
	cols                int
}

// Parts implements [tensor.Source].
func (v *strided) Parts() []*tensor.Tensor { return []*tensor.Tensor{v.of} }

// ReadRows implements [tensor.Source]. In a transposed tensor the elements of a column are close
// together, so rows are written in parallel.
func (v *strided) ReadRows(dst []byte, lo, hi int) error {
	size := v.of.DType.BlockBytes()
	for c := range v.cols {
		from := (v.first + lo*v.byRow + c*v.byCol) * size
		for to := c * size; to < len(dst); to += v.cols * size {
			switch size {
			case 2:
				binary.LittleEndian.PutUint16(dst[to:], binary.LittleEndian.Uint16(v.of.Data[from:]))
			case 4:
				binary.LittleEndian.PutUint32(dst[to:], binary.LittleEndian.Uint32(v.of.Data[from:]))
			default:
				copy(dst[to:to+size], v.of.Data[from:])
			}
			from += v.byRow * size
		}
	}
	return finite(v.of, dst)
}

// alternateElements returns the even or odd elements of a vector of unquantized numbers.
func alternateElements(t *tensor.Tensor, odd int) *tensor.Tensor {
	n := t.Elems() / 2
	return &tensor.Tensor{Name: alternateName(t, odd), DType: t.DType, Shape: []int{n}, Source: &strided{of: t, first: odd, byCol: 2, cols: n}}
}

// alternateRows returns the even or odd rows of a matrix.
func alternateRows(t *tensor.Tensor, odd int) *tensor.Tensor {
	half := &tensor.Tensor{Name: alternateName(t, odd), DType: t.DType, Shape: []int{t.Rows() / 2, t.Cols()}, Source: alternate{t, odd}}
	if v, ok := t.Source.(*strided); ok {
		half.Source = &strided{v.of, v.first + odd*v.byRow, 2 * v.byRow, v.byCol, v.cols}
	}
	return half
}

func alternateName(t *tensor.Tensor, odd int) string { return fmt.Sprintf("%s[%d::2]", t.Name, odd) }

// An alternate is a source of the even or odd rows of a tensor.
type alternate struct {
	of  *tensor.Tensor
	odd int
}

// Parts implements [tensor.Source].
func (a alternate) Parts() []*tensor.Tensor { return []*tensor.Tensor{a.of} }

// ReadRows implements [tensor.Source].
func (a alternate) ReadRows(dst []byte, lo, hi int) error {
	n := a.of.RowBytes()
	for r := lo; r < hi; r++ {
		if err := a.of.ReadRows(dst[(r-lo)*n:(r-lo+1)*n], 2*r+a.odd, 2*r+a.odd+1); err != nil {
			return err
		}
	}
	return finite(a.of, dst)
}
