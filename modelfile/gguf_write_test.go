package modelfile_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A source is tensor data that writes itself in parts.
type source [][]byte

func (s source) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for _, part := range s {
		n, err := w.Write(part)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Data produced while writing makes the same file as data in memory, however it is split, and the
// file has the announced size.
func TestGGUFWriterIsWriteGGUF(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		meta := []modelfile.KeyValue{{Key: "name", Value: rapid.StringN(0, 40, -1).Draw(r, "name")}}
		if rapid.Bool().Draw(r, "aligned") {
			meta = append(meta, modelfile.KeyValue{Key: "general.alignment", Value: uint32(64)})
		}
		var tensors []*tensor.Tensor
		var sources []modelfile.TensorSource
		for i := range rapid.IntRange(0, 4).Draw(r, "tensors") {
			d := rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.I8, tensor.Q4_0, tensor.Q6_K}).Draw(r, "format")
			blocks := rapid.IntRange(1, 9).Draw(r, "blocks")
			name, shape := strings.Repeat("t", i+1), []int{blocks * d.BlockLen()}
			data := rapid.SliceOfN(rapid.Byte(), blocks*d.BlockBytes(), blocks*d.BlockBytes()).Draw(r, "data")
			cut := rapid.IntRange(0, len(data)).Draw(r, "cut")
			tensors = append(tensors, &tensor.Tensor{Name: name, DType: d, Shape: shape, Data: data})
			sources = append(sources, modelfile.TensorSource{Name: name, DType: d, Shape: shape, Data: source{data[:cut], nil, data[cut:]}})
		}
		var want, got bytes.Buffer
		if err := modelfile.WriteGGUF(&want, meta, tensors); err != nil {
			r.Fatal(err)
		}
		g, err := modelfile.NewGGUFWriter(meta, sources)
		if err != nil {
			r.Fatal(err)
		}
		n, err := g.WriteTo(&got)
		if err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			r.Fatalf("%d bytes by parts differ from %d of WriteGGUF", got.Len(), want.Len())
		}
		if n != int64(got.Len()) || g.Size() != n {
			r.Fatalf("%d bytes were written, %d counted and %d foreseen", got.Len(), n, g.Size())
		}
	})
}

// A tensor that writes fewer or more bytes than its shape takes is an error and does not shift
// later ones.
func TestGGUFWriterMeasuresData(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		data io.WriterTo
		says string
	}{
		"too little": {source{make([]byte, 7)}, "after 7 of 8 bytes"},
		"nothing":    {source{}, "after 0 of 8 bytes"},
		"too much":   {source{make([]byte, 8), make([]byte, 1)}, "more than the 8 bytes"},
		"no source":  {nil, "no data"},
		"error":      {failing{broken}, "broken"},
	} {
		g, err := modelfile.NewGGUFWriter(nil, []modelfile.TensorSource{
			{Name: "first", DType: tensor.F32, Shape: []int{2}, Data: test.data},
			{Name: "second", DType: tensor.F32, Shape: []int{2}, Data: source{make([]byte, 8)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		n, err := g.WriteTo(&b)
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "first") {
			t.Errorf("%s: error %v, want one of tensor first that says %q", name, err, test.says)
		}
		if name == "error" && !errors.Is(err, broken) {
			t.Errorf("%s: error %v does not wrap that of the data", name, err)
		}
		if n != int64(b.Len()) || n > g.Size() {
			t.Errorf("%s: %d bytes counted, %d written, %d foreseen", name, n, b.Len(), g.Size())
		}
	}
}

type failing struct{ err error }

func (f failing) WriteTo(io.Writer) (int64, error) { return 0, f.err }

// Bytes written before a failure are counted.
func TestGGUFWriterFailingWriter(t *testing.T) {
	g, err := modelfile.NewGGUFWriter(nil, []modelfile.TensorSource{
		{Name: "w", DType: tensor.I8, Shape: []int{100}, Data: source{make([]byte, 50), make([]byte, 50)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range g.Size() {
		n, err := g.WriteTo(&narrow{room})
		if !errors.Is(err, io.ErrShortWrite) || n > room {
			t.Fatalf("room for %d of %d bytes: %d written, error %v", room, g.Size(), n, err)
		}
	}
	if n, err := g.WriteTo(&narrow{g.Size()}); err != nil || n != g.Size() {
		t.Errorf("room for all: %d of %d bytes written, error %v", n, g.Size(), err)
	}
}

// A narrow writer accepts left bytes and then fails.
type narrow struct{ left int64 }

func (w *narrow) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, io.ErrShortWrite
	}
	w.left -= int64(len(p))
	return len(p), nil
}

func TestNewGGUFWriterRefuses(t *testing.T) {
	one := func(d tensor.DType, shape ...int) []modelfile.TensorSource {
		return []modelfile.TensorSource{{Name: "w", DType: d, Shape: shape, Data: source{}}}
	}
	huge := one(tensor.I8, math.MaxInt)
	for i := range 3 {
		huge = append(huge, modelfile.TensorSource{Name: strings.Repeat("v", i+1), DType: tensor.I8, Shape: []int{math.MaxInt - 31}, Data: source{}})
	}
	for name, tensors := range map[string][]modelfile.TensorSource{
		"a row of part of a block":     one(tensor.Q4_0, 2, 16),
		"a scalar of a block format":   one(tensor.Q4_0),
		"a negative dimension":         one(tensor.F32, -1),
		"more elements than an int":    one(tensor.F32, math.MaxInt, 4),
		"more bytes than an int":       one(tensor.F32, math.MaxInt),
		"no elements":                  one(tensor.F32, 0),
		"five dimensions":              one(tensor.F32, 1, 1, 1, 1, 1),
		"a format that GGUF lacks":     one(tensor.U16, 1),
		"no format":                    one(tensor.DType(250), 1),
		"a name twice":                 append(one(tensor.F32, 1), one(tensor.F32, 1)...),
		"a file longer than an int64":  huge,
		"data up to the end of counts": huge[:1],
	} {
		if _, err := modelfile.NewGGUFWriter(nil, tensors); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g, err := modelfile.NewGGUFWriter(nil, one(tensor.F32))
	if err != nil || g.Size()%32 != 0 {
		t.Errorf("a scalar: error %v", err)
	}
}
