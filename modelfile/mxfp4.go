package modelfile

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// mxfp4 implements quant_method mxfp4, as gpt-oss has it (Rouhani et al., "Microscaling Data
// Formats for Deep Learning", 2023). A weight is stored as X_blocks [..., N, K/32, 16], with two
// columns of the weight per byte, the first in the low nibble, and X_scales [..., N, K/32],
// exponents of two. It becomes X.weight [..., N, K], which is [out, in] like other weights of that
// name; an X that is not quantized is [in, out].
func mxfp4(*quantization) *convention {
	return &convention{weight: mxfp4Weight, parts: []string{"_blocks", "_scales"}}
}

func mxfp4Weight(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	base, ok := strings.CutSuffix(t.Name, "_blocks")
	if !ok {
		return nil, nil
	}
	scales, err := a.needed(t, base+"_scales")
	if err != nil {
		return nil, err
	}
	last := len(t.Shape) - 1
	switch {
	case last < 2 || t.Shape[last] != blockElems/2 || t.Shape[last-1] > maxPacked:
		return nil, a.file.errorIn(t, 0, ErrFormat, "packed numbers of shape %v, want rows, blocks of a row, and %d bytes of a block", t.Shape, blockElems/2)
	case t.DType != tensor.U8:
		return nil, a.file.errorIn(t, 0, ErrFormat, "packed numbers in %v, want U8", t.DType)
	case scales.DType != tensor.U8 || !slices.Equal(scales.Shape, t.Shape[:last]):
		return nil, a.file.errorIn(scales, 0, ErrFormat, "scales in %v of shape %v, want U8 of shape %v, one for each block of %s", scales.DType, scales.Shape, t.Shape[:last], clip(t.Name))
	}
	shape := slices.Clone(t.Shape[:last])
	shape[last-1] *= blockElems
	return &tensor.Tensor{Name: base + ".weight", DType: tensor.MXFP4, Shape: shape, Source: &microscaled{a.file, t, scales}}, nil
}

// A microscaled is a weight of MXFP4 blocks and scales.
type microscaled struct {
	file           *File // for errors
	blocks, scales *tensor.Tensor
}

// Parts implements [tensor.Source].
func (w *microscaled) Parts() []*tensor.Tensor { return []*tensor.Tensor{w.blocks, w.scales} }

// ReadRows implements [tensor.Source]. In a block of MXFP4 the scale comes first, and byte i holds
// elements i and i+16.
func (w *microscaled) ReadRows(dst []byte, lo, hi int) error {
	n, le := w.scales.Cols(), binary.LittleEndian
	for b := lo * n; b < hi*n; b++ {
		scale, packed := w.scales.Data[b], w.blocks.Data[b*blockElems/2:]
		if scale == 0xff {
			return w.file.errorIn(w.scales, b, ErrFormat, "a scale of NaN: the file is damaged; download it again")
		}
		dst[0] = scale
		le.PutUint64(dst[1:], spread(le.Uint32(packed))|spread(le.Uint32(packed[8:]))<<4)
		le.PutUint64(dst[9:], spread(le.Uint32(packed[4:]))|spread(le.Uint32(packed[12:]))<<4)
		dst = dst[1+blockElems/2:]
	}
	return nil
}
