package tensor_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/tensor"
)

// A stored source has all rows and records which were read.
type stored struct {
	data []byte
	row  int // bytes per row
	err  error

	asked [][2]int
}

func (s *stored) ReadRows(dst []byte, lo, hi int) error {
	s.asked = append(s.asked, [2]int{lo, hi})
	if s.err != nil {
		return s.err
	}
	if copy(dst, s.data[lo*s.row:hi*s.row]) != len(dst) {
		return errors.New("dst has another length than the rows")
	}
	return nil
}

func (s *stored) Parts() []*tensor.Tensor { return nil }

// A derived tensor and its slices have the same rows and values as a tensor with the bytes.
func TestDerivedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(allDTypes[:tensor.F8_E4M3_32+1]).Draw(t, "dtype").dtype
		shape := []int{
			rapid.IntRange(1, 3).Draw(t, "planes"),
			rapid.IntRange(1, 5).Draw(t, "rows"),
			rapid.IntRange(0, 2).Draw(t, "blocks") * d.BlockLen(),
		}
		elems, _ := tensor.Elems(shape)
		size, _ := d.Size(elems)
		data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		plain := &tensor.Tensor{Name: "w", DType: d, Shape: shape, Data: data}
		derived := &tensor.Tensor{Name: "w", DType: d, Shape: shape, Source: &stored{data: data, row: plain.RowBytes()}}
		for range rapid.IntRange(0, 3).Draw(t, "slices") {
			lo := rapid.IntRange(0, plain.Rows()).Draw(t, "lo")
			hi := rapid.IntRange(lo, plain.Rows()).Draw(t, "hi")
			plain, derived = plain.RowSlice(lo, hi), derived.RowSlice(lo, hi)
		}
		if err := derived.Validate(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain.Shape, derived.Shape); diff != "" || derived.Size() != len(plain.Data) || derived.Data != nil {
			t.Fatalf("shape (-want +got):\n%s\nsize %d, want %d", diff, derived.Size(), len(plain.Data))
		}
		lo := rapid.IntRange(0, plain.Rows()).Draw(t, "first")
		hi := rapid.IntRange(lo, plain.Rows()).Draw(t, "end")
		for _, x := range []*tensor.Tensor{plain, derived} {
			got := make([]byte, (hi-lo)*x.RowBytes())
			if err := x.ReadRows(got, lo, hi); err != nil {
				t.Fatal(err)
			}
			if want := plain.Data[lo*x.RowBytes() : hi*x.RowBytes()]; !bytes.Equal(got, want) {
				t.Fatalf("rows %d to %d are %x, want %x", lo, hi, got, want)
			}
		}
		want, err := plain.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		got, err := derived.Float32s()
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d values, want %d; %v", len(got), len(want), err)
		}
		sameFloats(t, got, want)
	})
}

// EachRows reads everything in order, one piece at a time.
func TestEachRows(t *testing.T) {
	const rows, cols = 1000, 2048
	s := &stored{data: make([]byte, 2*rows*cols), row: 2 * cols}
	x := &tensor.Tensor{Name: "w", DType: tensor.F16, Shape: []int{rows, cols}, Source: s}
	at := 0
	err := x.EachRows(func(lo int, piece []byte) error {
		if lo != at || len(piece) > 1<<20 {
			t.Errorf("%d bytes from row %d on, want row %d and no more than 1 MiB", len(piece), lo, at)
		}
		at += len(piece) / x.RowBytes()
		return nil
	})
	if err != nil || at != rows || len(s.asked) < 4 {
		t.Errorf("%d rows of %d in %d pieces, %v", at, rows, len(s.asked), err)
	}
	stop := errors.New("enough")
	s.asked = nil
	if err := x.EachRows(func(int, []byte) error { return stop }); !errors.Is(err, stop) || len(s.asked) != 1 {
		t.Errorf("%v after %d pieces, want it to end with the first", err, len(s.asked))
	}
}

// A source is asked only for rows that exist, and its errors are returned.
func TestDerivedErrors(t *testing.T) {
	s := &stored{data: make([]byte, 24), row: 8}
	x := &tensor.Tensor{Name: "w", DType: tensor.F32, Shape: []int{3, 2}, Source: s}
	for _, test := range []struct{ lo, hi, bytes int }{
		{-1, 1, 16}, {2, 1, 0}, {0, 4, 32}, {0, 1, 7}, {0, 1, 9}, {0, 2, 8}, {3, 3, 1},
	} {
		for _, from := range []*tensor.Tensor{x, {Name: "w", DType: tensor.F32, Shape: []int{3, 2}, Data: s.data}} {
			if err := from.ReadRows(make([]byte, test.bytes), test.lo, test.hi); !errors.Is(err, tensor.ErrSize) {
				t.Errorf("rows %d to %d in %d bytes: %v, want an error that wraps ErrSize", test.lo, test.hi, test.bytes, err)
			}
		}
	}
	if err := x.ReadRows(nil, 3, 3); err != nil || len(s.asked) > 0 {
		t.Errorf("no rows: %v, asked for %v", err, s.asked)
	}
	s.err = errors.New("damaged")
	if err := x.ReadRows(make([]byte, 8), 1, 2); !errors.Is(err, s.err) || !slices.Equal(s.asked, [][2]int{{1, 2}}) {
		t.Errorf("%v after %v", err, s.asked)
	}
	if _, err := x.Float32s(); !errors.Is(err, s.err) {
		t.Errorf("values: %v", err)
	}
	x.Data = s.data
	if err := x.Validate(); !errors.Is(err, tensor.ErrSize) {
		t.Errorf("data beside a source: %v", err)
	}
	x.Data, x.Shape = nil, []int{3, -2}
	if err := x.Validate(); !errors.Is(err, tensor.ErrShape) {
		t.Errorf("a negative dimension: %v", err)
	}
}
