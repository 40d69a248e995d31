package tensor

import "fmt"

// columnsOf is the source of some columns of a tensor, in whole blocks.
type columnsOf struct {
	of     *Tensor
	lo, hi int
}

// ColumnSlice returns columns lo to hi of all rows, hi not included, as a tensor that reads the rows
// of t. [Tensor.Whole] returns t. It panics unless 0 <= lo <= hi <= [Tensor.Cols] and both are
// multiples of the length of a block.
func (t *Tensor) ColumnSlice(lo, hi int) *Tensor {
	block := t.DType.BlockLen()
	if lo < 0 || lo > hi || hi > t.Cols() || lo%block != 0 || hi%block != 0 {
		panic(fmt.Sprintf("tensor: %s: columns %d to %d of %d, in blocks of %d", t.Name, lo, hi, t.Cols(), block))
	}
	shape := append([]int(nil), t.Shape...)
	shape[len(shape)-1] = hi - lo
	return &Tensor{Name: t.Name, DType: t.DType, Shape: shape, Source: columnsOf{t, lo, hi}}
}

// Whole returns the tensor of which [Tensor.ColumnSlice] made t, and the first column of t in it;
// for any other tensor t and 0.
func (t *Tensor) Whole() (of *Tensor, first int) {
	if c, ok := t.Source.(columnsOf); ok {
		return c.of, c.lo
	}
	return t, 0
}

// Parts implements [Source].
func (c columnsOf) Parts() []*Tensor { return []*Tensor{c.of} }

// ReadRows implements [Source].
func (c columnsOf) ReadRows(dst []byte, lo, hi int) error {
	row := make([]byte, c.of.RowBytes())
	block, size := c.of.DType.BlockLen(), c.of.DType.BlockBytes()
	from, n := c.lo/block*size, (c.hi-c.lo)/block*size
	for r := lo; r < hi; r++ {
		if err := c.of.ReadRows(row, r, r+1); err != nil {
			return err
		}
		copy(dst[(r-lo)*n:(r-lo+1)*n], row[from:])
	}
	return nil
}
