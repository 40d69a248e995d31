package arch

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// A layout makes the tensor that formulas take of one that checkpoints keep in another
// order. Nothing is moved before a backend asks for rows.
type layout func(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error)

// transposed is for weights that are kept as [in, out]. A bias has no other side.
func transposed(_ *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if len(t.Shape) != 2 {
		return t, nil
	}
	if t.DType.BlockLen() != 1 || t.Source != nil {
		return nil, fmt.Errorf("%w: %s is kept with rows and columns exchanged, which is supported for plain numbers, not for %v", ErrTensor, t.Name, t.DType)
	}
	rows, cols := t.Shape[1], t.Shape[0]
	return &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: []int{rows, cols}, Source: &strided{of: t, byRow: 1, byCol: rows, cols: cols}}, nil
}

// grouped is for queries, keys and values in one weight, or bias, by key/value head: the
// heads of queries that share it, the head of keys, that of values. They are taken
// after each other: all queries, all keys, all values.
func grouped(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if rows := (s.Heads + 2*s.KVHeads) * s.HeadDim; len(t.Shape) == 0 || len(t.Shape) > 2 || t.Shape[0] != rows {
		return nil, fmt.Errorf("%w: %s has shape %v, want %d rows by the configuration", ErrTensor, t.Name, t.Shape, rows)
	}
	shared := s.Heads / s.KVHeads
	blocks := make([]int, 0, s.KVHeads*(shared+2))
	for i := range s.Heads {
		blocks = append(blocks, i/shared*(shared+2)+i%shared)
	}
	for part := range 2 {
		for g := range s.KVHeads {
			blocks = append(blocks, g*(shared+2)+shared+part)
		}
	}
	return reordered(t, blocks, s.HeadDim)
}

// reordered is a matrix or a vector with its blocks of size rows, or elements, in that
// order.
func reordered(t *tensor.Tensor, blocks []int, size int) (*tensor.Tensor, error) {
	if len(t.Shape) == 2 {
		return &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Source: moved{t, blocks, size}}, nil
	}
	if t.DType.BlockLen() != 1 || t.Source != nil {
		return nil, fmt.Errorf("%w: %s is %v, want plain numbers", ErrTensor, t.Name, t.DType)
	}
	v := &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: make([]byte, 0, len(t.Data))}
	bytes := size * t.DType.BlockBytes()
	for _, b := range blocks {
		v.Data = append(v.Data, t.Data[b*bytes:][:bytes]...)
	}
	return v, nil
}

// moved are the rows of a matrix in another order: block i of size rows is block
// blocks[i] of the matrix.
type moved struct {
	of     *tensor.Tensor
	blocks []int
	size   int
}

// Parts is the matrix.
func (m moved) Parts() []*tensor.Tensor { return []*tensor.Tensor{m.of} }

// ReadRows reads what of each block lies between lo and hi.
func (m moved) ReadRows(dst []byte, lo, hi int) error {
	rest, bytes := dst, m.of.RowBytes()
	for lo < hi {
		n := min(hi-lo, m.size-lo%m.size)
		from := m.blocks[lo/m.size]*m.size + lo%m.size
		if err := m.of.ReadRows(rest[:n*bytes], from, from+n); err != nil {
			return err
		}
		rest, lo = rest[n*bytes:], lo+n
	}
	return finite(m.of, dst)
}

// finite checks rows made of t's, and says where in t the first number is that is not
// finite. A source has checked its own.
func finite(t *tensor.Tensor, rows []byte) error {
	if t.Source != nil {
		return nil
	}
	err := tensor.CheckFinite(t.DType, rows)
	if err == nil {
		return nil
	}
	if first := tensor.CheckFinite(t.DType, t.Data); first != nil {
		return first
	}
	return err
}
