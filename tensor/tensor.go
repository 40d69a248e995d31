// Package tensor defines the number formats of model weights: their names, the layout of their
// blocks in bytes, and the conversion of blocks to and from float32. It does not know files, models
// or arithmetic between tensors.
package tensor

import "fmt"

// A Tensor is a named array of numbers in the form of a file. Data is often a view of a mapped
// page: it must not be written to, need not be aligned to the size of its elements, and is valid
// only as long as the mapping.
//
// A derived tensor has a [Source] instead of Data: its bytes do not exist until rows are read with
// [Tensor.ReadRows], which works for both kinds of tensors.
//
// The methods that return sizes and views require that [Tensor.Validate] returns nil.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int  // outermost dimension first: a linear layer is [out, in]; a scalar has no dimension
	Data   []byte // consecutive rows, little-endian; nil if there is a Source
	Source Source // nil if Data holds the bytes
}

// Elems returns the number of elements: the product of all dimensions, 1 for a scalar.
func (t *Tensor) Elems() int {
	n, err := Elems(t.Shape)
	if err != nil {
		return 0
	}
	return n
}

// Rows returns the product of all dimensions but the last: 1 for a vector or a
// scalar.
func (t *Tensor) Rows() int {
	if len(t.Shape) == 0 {
		return 1
	}
	n, err := Elems(t.Shape[:len(t.Shape)-1])
	if err != nil {
		return 0
	}
	return n
}

// Cols returns the last dimension, which is the number of elements in a row: 1 for a scalar.
func (t *Tensor) Cols() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// RowBytes returns the number of bytes of one row.
func (t *Tensor) RowBytes() int {
	n, err := t.DType.Size(t.Cols())
	if err != nil {
		return 0
	}
	return n
}

// Size returns the number of bytes of all rows, even if the tensor is derived.
func (t *Tensor) Size() int {
	n, err := t.DType.Size(t.Elems())
	if err != nil {
		return 0
	}
	return n
}

// Row returns a view of the bytes of row i. It panics if i is not below [Tensor.Rows] or the tensor
// is derived.
func (t *Tensor) Row(i int) []byte {
	if i < 0 || i >= t.Rows() {
		panic(fmt.Sprintf("tensor: %s: row %d of %d", t.Name, i, t.Rows()))
	}
	n := t.RowBytes()
	return t.Data[i*n : (i+1)*n : (i+1)*n]
}

// RowSlice returns rows lo to hi, hi not included, as a tensor [hi-lo, cols] that shares the bytes
// or the source. It can split a fused projection. It panics unless 0 <= lo <= hi <= [Tensor.Rows].
func (t *Tensor) RowSlice(lo, hi int) *Tensor {
	if lo < 0 || lo > hi || hi > t.Rows() {
		panic(fmt.Sprintf("tensor: %s: rows %d to %d of %d", t.Name, lo, hi, t.Rows()))
	}
	part := &Tensor{Name: t.Name, DType: t.DType, Shape: []int{hi - lo, t.Cols()}}
	if t.Source != nil {
		part.Source = rowsFrom{t.Source, lo}
		return part
	}
	n := t.RowBytes()
	part.Data = t.Data[lo*n : hi*n : hi*n]
	return part
}

// Float32s returns the values of the whole tensor in a new slice of [Tensor.Elems] elements. The
// error is that of [Tensor.Validate], [Tensor.ReadRows] or [Dequantize].
func (t *Tensor) Float32s() ([]float32, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	dst, cols := make([]float32, t.Elems()), t.Cols()
	err := t.EachRows(func(lo int, rows []byte) error {
		values := dst[lo*cols:][:len(rows)/t.DType.BlockBytes()*t.DType.BlockLen()]
		if err := Dequantize(t.DType, values, rows); err != nil {
			return fmt.Errorf("tensor: %s: %w", t.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dst, nil
}

// Validate checks that the shape is valid, that a row is a whole number of blocks, and that Data
// has exactly the bytes of the shape, or is empty if there is a Source. The errors wrap [ErrShape],
// [ErrDType] or [ErrSize].
func (t *Tensor) Validate() error {
	elems, err := Elems(t.Shape)
	if err != nil {
		return fmt.Errorf("tensor: %s: %w", t.Name, err)
	}
	if !t.DType.known() {
		return fmt.Errorf("tensor: %s: %w: %v", t.Name, ErrDType, t.DType)
	}
	if block := t.DType.BlockLen(); t.Cols()%block != 0 {
		return fmt.Errorf("tensor: %s: %w: a row of %d elements is not a multiple of the %d in a block of %v",
			t.Name, ErrSize, t.Cols(), block, t.DType)
	}
	size, err := t.DType.Size(elems)
	if err != nil {
		return fmt.Errorf("tensor: %s: %w", t.Name, err)
	}
	if t.Source != nil {
		if len(t.Data) > 0 {
			return fmt.Errorf("tensor: %s: %w: both %d bytes of data and a source of rows", t.Name, ErrSize, len(t.Data))
		}
		return nil
	}
	if size != len(t.Data) {
		return fmt.Errorf("tensor: %s: %w: %v %v takes %d bytes, but Data has %d",
			t.Name, ErrSize, t.DType, t.Shape, size, len(t.Data))
	}
	return nil
}

// Elems returns the product of the dimensions; 1 if there are none. The error wraps [ErrShape] if a
// dimension is negative or the product is more than an int can count.
func Elems(shape []int) (int, error) {
	n, zero := 1, false
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("%w: negative dimension in %v", ErrShape, shape)
		}
		zero = zero || dim == 0
	}
	if zero {
		return 0, nil
	}
	for _, dim := range shape {
		var ok bool
		if n, ok = mul(n, dim); !ok {
			return 0, fmt.Errorf("%w: %v has more elements than an int can count", ErrShape, shape)
		}
	}
	return n, nil
}
