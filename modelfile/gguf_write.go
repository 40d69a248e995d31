package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A KeyValue is one entry of a GGUF file's metadata.
type KeyValue struct {
	Key   string
	Value any // of a type listed at [Meta] for GGUF
}

// A TensorSource is a tensor whose data is produced while a file is written.
type TensorSource struct {
	Name  string
	DType tensor.DType
	Shape []int       // outermost dimension first, as in [tensor.Tensor]
	Data  io.WriterTo // writes exactly the bytes that DType and Shape take
}

// A GGUFWriter is the layout of a GGUF file of version 3. All positions are fixed; only the data of
// the tensors is missing. It holds the metadata and the descriptions of the tensors, but none of
// their data.
type GGUFWriter struct {
	head      []byte // everything before the tensor data, without padding
	alignment uint64
	tensors   []TensorSource
	lengths   []int // of the tensors' data, in bytes
	size      int64
}

// WriteGGUF writes a GGUF file of version 3 with metadata and tensors in the given order. Tensor
// data is aligned to 32 bytes, or to the uint32 that the metadata has under "general.alignment".
//
// It returns an error before writing anything if a tensor is not valid ([tensor.Tensor.Validate])
// or [NewGGUFWriter] fails. Later errors are those of w.
func WriteGGUF(w io.Writer, meta []KeyValue, tensors []*tensor.Tensor) error {
	sources := make([]TensorSource, len(tensors))
	for i, t := range tensors {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("modelfile: writing GGUF: %w", err)
		}
		sources[i] = TensorSource{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: rowsOf{t}}
	}
	g, err := NewGGUFWriter(meta, sources)
	if err != nil {
		return err
	}
	_, err = g.WriteTo(w)
	return err
}

// NewGGUFWriter lays out a file with metadata and tensors in the given order, as [WriteGGUF] does.
//
// It returns an error if a value has a type that GGUF lacks (an int, for example), if a tensor's
// shape does not fit its format or GGUF supports neither, if a key or name is duplicate or not
// printable UTF-8, or if the length of the file would exceed an int64.
func NewGGUFWriter(meta []KeyValue, tensors []TensorSource) (*GGUFWriter, error) {
	le := binary.LittleEndian
	head := append([]byte(nil), ggufMagic...)
	head = le.AppendUint32(head, 3)
	head = le.AppendUint64(head, uint64(len(tensors)))
	head = le.AppendUint64(head, uint64(len(meta)))

	g := &GGUFWriter{alignment: ggufAlignment, tensors: tensors, lengths: make([]int, len(tensors))}
	keys := make(map[string]bool, len(meta))
	for _, kv := range meta {
		if keys[kv.Key] || !printable(kv.Key) {
			return nil, fmt.Errorf("modelfile: writing GGUF: key %s is duplicate or not printable UTF-8", clip(kv.Key))
		}
		keys[kv.Key] = true
		if kv.Key == ggufAlignmentKey {
			n, ok := kv.Value.(uint32)
			if !ok || !ggufAligns(int64(n)) {
				return nil, fmt.Errorf("modelfile: writing GGUF: key %s: %v is not a uint32, a power of two or a multiple of 8, below 2^31",
					kv.Key, kv.Value)
			}
			g.alignment = uint64(n)
		}
		typ, value, err := appendGGUFValue(nil, kv.Value, 0)
		if err != nil {
			return nil, fmt.Errorf("modelfile: writing GGUF: key %s: %w", clip(kv.Key), err)
		}
		head = appendGGUFString(head, kv.Key)
		head = le.AppendUint32(head, uint32(typ))
		head = append(head, value...)
	}

	offset := uint64(0)
	names := make(map[string]bool, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		length, err := ggufTensorBytes(t)
		if err != nil {
			return nil, err
		}
		if names[t.Name] || !printable(t.Name) {
			return nil, fmt.Errorf("modelfile: writing GGUF: tensor %s is duplicate or has a name that is not printable UTF-8", clip(t.Name))
		}
		names[t.Name] = true
		head = appendGGUFString(head, t.Name)
		head = le.AppendUint32(head, uint32(len(t.Shape)))
		for j := len(t.Shape) - 1; j >= 0; j-- {
			head = le.AppendUint64(head, uint64(t.Shape[j]))
		}
		id, _ := ggmlID(t.DType)
		head = le.AppendUint32(head, id)
		head = le.AppendUint64(head, offset)
		g.lengths[i] = length
		offset += uint64(length)
		offset += padding(offset, g.alignment)
		if offset > math.MaxInt64 {
			return nil, fmt.Errorf("modelfile: writing GGUF: tensor %s: the file would be too long", clip(t.Name))
		}
	}
	g.head = head
	before := uint64(len(head)) + padding(uint64(len(head)), g.alignment)
	if offset > math.MaxInt64-before {
		return nil, fmt.Errorf("modelfile: writing GGUF: %d bytes of data: the file would be too long", offset)
	}
	g.size = int64(before + offset)
	return g, nil
}

// Size returns the length of the file in bytes.
func (g *GGUFWriter) Size() int64 { return g.size }

// WriteTo writes the file, asking each tensor for its data in file order. It returns the number of
// bytes written. The error is that of w or of a tensor's Data; data of the wrong length is an error
// too.
func (g *GGUFWriter) WriteTo(w io.Writer) (int64, error) {
	out := &measuredWriter{w: w, left: g.size}
	if err := out.padded(g.alignment, func() error { _, err := out.Write(g.head); return err }); err != nil {
		return out.written, fmt.Errorf("modelfile: writing GGUF: %w", err)
	}
	for i := range g.tensors {
		err := out.padded(g.alignment, func() error {
			if g.tensors[i].Data == nil {
				return errors.New("it has no data")
			}
			data := &measuredWriter{w: out, left: int64(g.lengths[i])}
			if _, err := g.tensors[i].Data.WriteTo(data); err != nil {
				return err
			}
			if data.left > 0 {
				return fmt.Errorf("its data ended after %d of %d bytes", data.written, g.lengths[i])
			}
			return nil
		})
		if err != nil {
			return out.written, fmt.Errorf("modelfile: writing GGUF: tensor %s: %w", clip(g.tensors[i].Name), err)
		}
	}
	return out.written, nil
}

// A measuredWriter accepts a limited number of bytes.
type measuredWriter struct {
	w             io.Writer
	written, left int64
}

func (m *measuredWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > m.left {
		return 0, fmt.Errorf("more than the %d bytes of its shape", m.written+m.left)
	}
	n, err := m.w.Write(p)
	m.written += int64(n)
	m.left -= int64(n)
	return n, err
}

// padded calls write, and then writes zeros up to the next multiple of the alignment.
func (m *measuredWriter) padded(alignment uint64, write func() error) error {
	if err := write(); err != nil {
		return err
	}
	_, err := m.Write(make([]byte, padding(uint64(m.written), alignment)))
	return err
}

// ggufTensorBytes returns the size of a tensor's data in bytes. It returns an error if GGUF cannot
// hold the tensor.
func ggufTensorBytes(t *TensorSource) (int, error) {
	elems, err := tensor.Elems(t.Shape)
	if err != nil {
		return 0, fmt.Errorf("modelfile: writing GGUF: tensor %s: %w", clip(t.Name), err)
	}
	if _, ok := ggmlID(t.DType); !ok {
		return 0, fmt.Errorf("modelfile: writing GGUF: tensor %s: dtype %v: %w by the format", clip(t.Name), t.DType, ErrUnsupported)
	}
	if len(t.Shape) > ggufMaxDims || elems == 0 {
		return 0, fmt.Errorf("modelfile: writing GGUF: tensor %s: shape %v: %w by the format: more than %d dimensions, or no elements",
			clip(t.Name), t.Shape, ErrUnsupported, ggufMaxDims)
	}
	row := 1 // a scalar is one row of one element
	if n := len(t.Shape); n > 0 {
		row = t.Shape[n-1]
	}
	if _, err := t.DType.Size(row); err != nil {
		return 0, fmt.Errorf("modelfile: writing GGUF: tensor %s: %w", clip(t.Name), err)
	}
	length, err := t.DType.Size(elems)
	if err != nil {
		return 0, fmt.Errorf("modelfile: writing GGUF: tensor %s: %w", clip(t.Name), err)
	}
	return length, nil
}

// appendGGUFValue appends a value without its type, and returns the type.
func appendGGUFValue(b []byte, value any, depth int) (ggufType, []byte, error) {
	switch v := value.(type) {
	case string:
		return ggufString, appendGGUFString(b, v), nil
	case []string:
		b = appendGGUFArray(b, ggufString, len(v))
		for _, s := range v {
			b = appendGGUFString(b, s)
		}
		return ggufArray, b, nil
	case []any:
		if depth+1 >= ggufMaxDepth { // the elements are arrays too
			return 0, nil, fmt.Errorf("arrays more than %d deep", ggufMaxDepth)
		}
		b = appendGGUFArray(b, ggufArray, len(v))
		for i, element := range v {
			typ, with, err := appendGGUFValue(b, element, depth+1)
			if err != nil {
				return 0, nil, err
			}
			if typ != ggufArray {
				return 0, nil, fmt.Errorf("element %d of a []any is a %T and not a slice", i, element)
			}
			b = with
		}
		return ggufArray, b, nil
	}
	typ, length, ok := ggufNumberType(value)
	if !ok {
		return 0, nil, fmt.Errorf("a value of type %T: %w by the format", value, ErrUnsupported)
	}
	if length >= 0 {
		b = appendGGUFArray(b, typ, length)
		typ = ggufArray
	}
	b, err := binary.Append(b, binary.LittleEndian, value)
	return typ, b, err
}

// ggufNumberType returns the type of a number or bool, or the element type and length of a slice.
// length is negative if value is not a slice.
func ggufNumberType(value any) (typ ggufType, length int, ok bool) {
	switch v := value.(type) {
	case uint8:
		return ggufUint8, -1, true
	case int8:
		return ggufInt8, -1, true
	case uint16:
		return ggufUint16, -1, true
	case int16:
		return ggufInt16, -1, true
	case uint32:
		return ggufUint32, -1, true
	case int32:
		return ggufInt32, -1, true
	case uint64:
		return ggufUint64, -1, true
	case int64:
		return ggufInt64, -1, true
	case float32:
		return ggufFloat32, -1, true
	case float64:
		return ggufFloat64, -1, true
	case bool:
		return ggufBool, -1, true
	case []uint8:
		return ggufUint8, len(v), true
	case []int8:
		return ggufInt8, len(v), true
	case []uint16:
		return ggufUint16, len(v), true
	case []int16:
		return ggufInt16, len(v), true
	case []uint32:
		return ggufUint32, len(v), true
	case []int32:
		return ggufInt32, len(v), true
	case []uint64:
		return ggufUint64, len(v), true
	case []int64:
		return ggufInt64, len(v), true
	case []float32:
		return ggufFloat32, len(v), true
	case []float64:
		return ggufFloat64, len(v), true
	case []bool:
		return ggufBool, len(v), true
	}
	return 0, 0, false
}

func appendGGUFString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

func appendGGUFArray(b []byte, elements ggufType, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(elements))
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

// padding returns the number of bytes from n to the next multiple of alignment.
func padding(n, alignment uint64) uint64 { return (alignment - n%alignment) % alignment }
