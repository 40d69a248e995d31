package modelfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/realizar/realizar/tensor"
)

// A KeyValue is one entry of a GGUF file's metadata.
type KeyValue struct {
	Key   string
	Value any // of a type that [Meta] names for GGUF
}

// WriteGGUF writes a GGUF file of version 3 with metadata and tensors in the order
// given. Tensor data is aligned to 32 bytes, or to the uint32 that the metadata
// has under "general.alignment".
//
// It returns an error, before anything is written, when a value is of a type that
// GGUF does not have (an int, for example), when a tensor is not valid
// ([tensor.Tensor.Validate]) or of a format that GGUF does not have, when a key or
// a name stands twice, and otherwise the error of w.
func WriteGGUF(w io.Writer, meta []KeyValue, tensors []*tensor.Tensor) error {
	le := binary.LittleEndian
	head := append([]byte(nil), ggufMagic...)
	head = le.AppendUint32(head, 3)
	head = le.AppendUint64(head, uint64(len(tensors)))
	head = le.AppendUint64(head, uint64(len(meta)))

	alignment := uint64(ggufAlignment)
	keys := make(map[string]bool, len(meta))
	for _, kv := range meta {
		if keys[kv.Key] {
			return fmt.Errorf("modelfile: writing GGUF: key %s stands twice", clip(kv.Key))
		}
		keys[kv.Key] = true
		if kv.Key == ggufAlignmentKey {
			n, ok := kv.Value.(uint32)
			if !ok || !ggufAligns(int64(n)) {
				return fmt.Errorf("modelfile: writing GGUF: key %s: %v is not a uint32, a power of two or a multiple of 8, below 2^31",
					kv.Key, kv.Value)
			}
			alignment = uint64(n)
		}
		typ, value, err := appendGGUFValue(nil, kv.Value, 0)
		if err != nil {
			return fmt.Errorf("modelfile: writing GGUF: key %s: %w", clip(kv.Key), err)
		}
		head = appendGGUFString(head, kv.Key)
		head = le.AppendUint32(head, uint32(typ))
		head = append(head, value...)
	}

	offset := uint64(0)
	names := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		if err := checkGGUFTensor(t); err != nil {
			return err
		}
		if names[t.Name] {
			return fmt.Errorf("modelfile: writing GGUF: tensor %s stands twice", clip(t.Name))
		}
		names[t.Name] = true
		head = appendGGUFString(head, t.Name)
		head = le.AppendUint32(head, uint32(len(t.Shape)))
		for i := len(t.Shape) - 1; i >= 0; i-- {
			head = le.AppendUint64(head, uint64(t.Shape[i]))
		}
		id, _ := ggmlID(t.DType)
		head = le.AppendUint32(head, id)
		head = le.AppendUint64(head, offset)
		offset += uint64(len(t.Data))
		offset += padding(offset, alignment)
	}

	if err := writePadded(w, head, alignment); err != nil {
		return fmt.Errorf("modelfile: writing GGUF: %w", err)
	}
	for _, t := range tensors {
		if err := writePadded(w, t.Data, alignment); err != nil {
			return fmt.Errorf("modelfile: writing GGUF: tensor %s: %w", clip(t.Name), err)
		}
	}
	return nil
}

// checkGGUFTensor reports what keeps a tensor from standing in a GGUF file.
func checkGGUFTensor(t *tensor.Tensor) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("modelfile: writing GGUF: %w", err)
	}
	if _, ok := ggmlID(t.DType); !ok {
		return fmt.Errorf("modelfile: writing GGUF: tensor %s: dtype %v: %w by the format", clip(t.Name), t.DType, ErrUnsupported)
	}
	if len(t.Shape) > ggufMaxDims || t.Elems() == 0 {
		return fmt.Errorf("modelfile: writing GGUF: tensor %s: shape %v: %w by the format: more than %d dimensions, or no elements",
			clip(t.Name), t.Shape, ErrUnsupported, ggufMaxDims)
	}
	return nil
}

// appendGGUFValue appends a value without its type, which it returns.
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
		if depth+1 >= ggufMaxDepth { // its elements are arrays too
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

// ggufNumberType returns the type of a number or truth value, or that of a slice's
// elements and their number; the number is negative when value is no slice.
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

// padding returns the bytes from n to the next multiple of alignment.
func padding(n, alignment uint64) uint64 { return (alignment - n%alignment) % alignment }

// writePadded writes b and zeros up to the next multiple of the alignment, at which
// b must begin.
func writePadded(w io.Writer, b []byte, alignment uint64) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, padding(uint64(len(b)), alignment)))
	return err
}
