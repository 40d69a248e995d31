package tensor_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/tensor"
)

func TestElems(t *testing.T) {
	for _, test := range []struct {
		shape []int
		want  int
	}{
		{nil, 1},
		{[]int{}, 1},
		{[]int{7}, 7},
		{[]int{2, 3, 4}, 24},
		{[]int{math.MaxInt}, math.MaxInt},
		{[]int{math.MaxInt, math.MaxInt, 0}, 0},
	} {
		if got, err := tensor.Elems(test.shape); err != nil || got != test.want {
			t.Errorf("Elems(%v) = %d, %v, want %d", test.shape, got, err, test.want)
		}
	}
	for _, shape := range [][]int{
		{-1},
		{0, -1},
		{math.MinInt, 2},
		{math.MaxInt, 2},
		{math.MaxInt/2 + 1, 1, 2},
		{1 << 16, 1 << 16, 1 << 16, 1 << 16},
	} {
		if got, err := tensor.Elems(shape); !errors.Is(err, tensor.ErrShape) {
			t.Errorf("Elems(%v) = %d, %v, want an error that wraps ErrShape", shape, got, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name  string
		dtype tensor.DType
		shape []int
		bytes int
		want  error
	}{
		{"matrix", tensor.F32, []int{2, 3}, 24, nil},
		{"scalar", tensor.F32, nil, 4, nil},
		{"no elements", tensor.F32, []int{0, 5}, 0, nil},
		{"blocks", tensor.Q4_0, []int{3, 64}, 3 * 2 * 18, nil},
		{"too few bytes", tensor.F32, []int{2, 3}, 23, tensor.ErrSize},
		{"too many bytes", tensor.F32, []int{2, 3}, 25, tensor.ErrSize},
		// 16 rows of 16 elements make 8 blocks of Q4_0, but no row is a whole number of blocks.
		{"row of half a block", tensor.Q4_0, []int{16, 16}, 8 * 18, tensor.ErrSize},
		{"scalar of a block format", tensor.Q8_0, nil, 34, tensor.ErrSize},
		{"negative dimension", tensor.F32, []int{-2, -3}, 24, tensor.ErrShape},
		{"overflow", tensor.F32, []int{math.MaxInt, math.MaxInt}, 0, tensor.ErrShape},
		{"overflow of bytes", tensor.F32, []int{math.MaxInt}, 0, tensor.ErrSize},
		{"unknown format", 200, []int{1}, 1, tensor.ErrDType},
	} {
		x := &tensor.Tensor{Name: "w", DType: test.dtype, Shape: test.shape, Data: make([]byte, test.bytes)}
		if err := x.Validate(); !errors.Is(err, test.want) {
			t.Errorf("%s: Validate() = %v, want %v", test.name, err, test.want)
		}
		if _, err := x.Float32s(); !errors.Is(err, test.want) {
			t.Errorf("%s: Float32s() = %v, want %v", test.name, err, test.want)
		}
		// The sizes of an invalid tensor are undefined, but the methods must not panic.
		x.Elems()
		x.Rows()
		x.Cols()
		x.RowBytes()
	}
}

func TestSizes(t *testing.T) {
	type sizes struct{ Elems, Rows, Cols, RowBytes int }
	for _, test := range []struct {
		dtype tensor.DType
		shape []int
		want  sizes
	}{
		{tensor.F32, nil, sizes{1, 1, 1, 4}},
		{tensor.F16, []int{5}, sizes{5, 1, 5, 10}},
		{tensor.Q8_0, []int{3, 64}, sizes{192, 3, 64, 68}},
		{tensor.Q6_K, []int{2, 3, 512}, sizes{3072, 6, 512, 420}},
		{tensor.F32, []int{4, 0}, sizes{0, 4, 0, 0}},
	} {
		x := &tensor.Tensor{DType: test.dtype, Shape: test.shape}
		got := sizes{x.Elems(), x.Rows(), x.Cols(), x.RowBytes()}
		if got != test.want {
			t.Errorf("%v %v: %+v, want %+v", test.dtype, test.shape, got, test.want)
		}
	}
}

// A row, and a slice of rows, have the values of the whole tensor at their place.
func TestRowsAreViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(allDTypes[:tensor.F8_E4M3_32+1]).Draw(t, "dtype").dtype
		shape := []int{
			rapid.IntRange(1, 3).Draw(t, "planes"),
			rapid.IntRange(1, 4).Draw(t, "rows"),
			rapid.IntRange(1, 2).Draw(t, "blocks") * d.BlockLen(),
		}
		elems, _ := tensor.Elems(shape)
		size, _ := d.Size(elems)
		data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		x := &tensor.Tensor{Name: "w", DType: d, Shape: shape, Data: data}
		all, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		lo := rapid.IntRange(0, x.Rows()).Draw(t, "lo")
		hi := rapid.IntRange(lo, x.Rows()).Draw(t, "hi")
		part := x.RowSlice(lo, hi)
		if diff := cmp.Diff([]int{hi - lo, x.Cols()}, part.Shape); diff != "" {
			t.Fatalf("shape of a slice of rows (-want +got):\n%s", diff)
		}
		got, err := part.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		sameFloats(t, got, all[lo*x.Cols():hi*x.Cols()])
		for i := lo; i < hi; i++ {
			row := make([]float32, x.Cols())
			if err := tensor.Dequantize(d, row, x.Row(i)); err != nil {
				t.Fatal(err)
			}
			sameFloats(t, row, all[i*x.Cols():(i+1)*x.Cols()])
		}
		if hi > lo && &part.Data[0] != &data[lo*x.RowBytes()] {
			t.Fatal("a slice of rows is a copy")
		}
	})
}

func sameFloats(t *rapid.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestRowOutOfRange(t *testing.T) {
	x := &tensor.Tensor{Name: "w", DType: tensor.F32, Shape: []int{2, 1}, Data: make([]byte, 8)}
	for name, call := range map[string]func(){
		"Row(2)":         func() { x.Row(2) },
		"Row(-1)":        func() { x.Row(-1) },
		"RowSlice(1, 3)": func() { x.RowSlice(1, 3) },
		"RowSlice(2, 1)": func() { x.RowSlice(2, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a tensor of 2 rows does not panic", name)
				}
			}()
			call()
		}()
	}
}
