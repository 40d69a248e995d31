package tensor_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// Columns of a matrix have the bytes of its rows there, whatever rows are read, and know the matrix.
func TestColumnSlice(t *testing.T) {
	const rows, cols = 5, 96
	w := &tensor.Tensor{Name: "w", DType: tensor.Q8_0, Shape: []int{rows, cols}, Data: make([]byte, rows*3*34)}
	for i := range w.Data {
		w.Data[i] = byte(i)
	}
	part := w.ColumnSlice(32, 96)
	if of, first := part.Whole(); of != w || first != 32 || !slices.Equal(part.Shape, []int{rows, 64}) || part.Validate() != nil {
		t.Errorf("columns from %d on of %v, shape %v, %v", first, of.Name, part.Shape, part.Validate())
	}
	if of, first := w.Whole(); of != w || first != 0 {
		t.Error("a whole matrix is a part of another")
	}
	var want []byte
	for r := range rows {
		want = append(want, w.Row(r)[34:]...)
	}
	for lo := range rows {
		for hi := lo; hi <= rows; hi++ {
			got := make([]byte, (hi-lo)*part.RowBytes())
			if err := part.ReadRows(got, lo, hi); err != nil || !bytes.Equal(got, want[lo*68:hi*68]) {
				t.Errorf("rows %d to %d: %v", lo, hi, err)
			}
		}
	}
	for _, r := range [][2]int{{-32, 32}, {0, 128}, {64, 32}, {16, 48}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("columns %v exist", r)
				}
			}()
			w.ColumnSlice(r[0], r[1])
		}()
	}
}
