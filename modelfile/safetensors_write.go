package modelfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// WriteSafetensors writes tensors as a safetensors file, sorted by decreasing element size and then
// by name, which aligns every tensor to its elements.
//
// It returns an error before writing anything if a tensor is not valid ([tensor.Tensor.Validate])
// or the format cannot hold it: a block quantization, which wraps [ErrUnsupported], or a name that
// is duplicate or not printable UTF-8. Later errors are those of w.
func WriteSafetensors(w io.Writer, tensors []*tensor.Tensor) error {
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	sorted := slices.SortedFunc(slices.Values(tensors), func(a, b *tensor.Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.BlockBytes(), a.DType.BlockBytes()), cmp.Compare(a.Name, b.Name))
	})
	var header bytes.Buffer
	seen := make(map[string]bool, len(tensors))
	offset := 0
	header.WriteByte('{')
	for i, t := range sorted {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("modelfile: writing safetensors: %w", err)
		}
		if t.DType.Quantized() {
			return fmt.Errorf("modelfile: writing safetensors: tensor %s: dtype %v: %w by the format",
				clip(t.Name), t.DType, ErrUnsupported)
		}
		if seen[t.Name] || t.Name == safetensorsMetadataKey || !printable(t.Name) {
			return fmt.Errorf("modelfile: writing safetensors: tensor %s: the name is duplicate, reserved or not printable UTF-8",
				clip(t.Name))
		}
		seen[t.Name] = true
		name, err := json.Marshal(t.Name)
		if err != nil {
			return fmt.Errorf("modelfile: writing safetensors: tensor %s: %w", clip(t.Name), err)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{} // encoding/json writes a nil slice as null
		}
		value, err := json.Marshal(entry{t.DType.String(), shape, [2]int{offset, offset + t.Size()}})
		if err != nil {
			return fmt.Errorf("modelfile: writing safetensors: tensor %s: %w", clip(t.Name), err)
		}
		if i > 0 {
			header.WriteByte(',')
		}
		header.Write(name)
		header.WriteByte(':')
		header.Write(value)
		offset += t.Size()
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > safetensorsMaxHeader {
		return fmt.Errorf("modelfile: writing safetensors: %d tensors: %w by the format: a header of %d bytes, more than %d",
			len(tensors), ErrUnsupported, header.Len(), safetensorsMaxHeader)
	}
	prefix := binary.LittleEndian.AppendUint64(nil, uint64(header.Len()))
	for _, b := range [][]byte{prefix, header.Bytes()} {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("modelfile: writing safetensors: %w", err)
		}
	}
	for _, t := range sorted {
		if _, err := (rowsOf{t}).WriteTo(w); err != nil {
			return fmt.Errorf("modelfile: writing safetensors: tensor %s: %w", clip(t.Name), err)
		}
	}
	return nil
}
