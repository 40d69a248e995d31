package modelfile

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// FP8 checkpoints have X.weight [N, K] of E4M3 numbers, and scales to multiply them by:
// X.weight_scale, or X.weight_scale_inv or X.scale in DeepSeek's conventions. A scale is for the whole
// weight, for a row, or for a block of rows and columns; the last blocks may be smaller. MiMo's blocks
// begin anew in each of as many equal parts of the rows as there are key/value heads, of which each was
// on a device of its own in training. Stacked experts, X [E, N, K], have X_scale or X_scale_inv with one
// scale for each. The weights become [tensor.F8_E4M3_32].
//
// Such checkpoints may have experts in FP4, as DeepSeek-V4's and MiMo's: X.weight [N, K/2] of bytes,
// and exponents of two as scales, [N, K/32]. These are the parts of [mxfp4], and become MXFP4.

// blockFP8 implements quant_method fp8.
func blockFP8(q *quantization) *convention {
	q.only("fmt", "e4m3", "e4m3", "float8_e4m3fn")
	block, ok := q.block("weight_block_size")
	heads, _ := q.meta.Int("num_key_value_heads")
	return fp8(&fp8Scales{block: block, blocks: ok, parts: int(max(1, min(heads, mostParts)))})
}

// mostParts bounds the parts of a weight's rows.
const mostParts = 1 << 10

// rowFP8 implements quant_method fbgemm_fp8.
func rowFP8(*quantization) *convention { return fp8(&fp8Scales{}) }

// modeloptFP8 implements quant_method modelopt.
func modeloptFP8(q *quantization) *convention {
	key := "quant_algo"
	if !q.has(key) {
		key = "quantization.quant_algo"
	}
	q.only(key, "", "fp8")
	return fp8(&fp8Scales{})
}

func fp8(s *fp8Scales) *convention {
	return &convention{weight: s.weight, parts: []string{".weight_scale", ".weight_scale_inv"}, activations: activationScales}
}

// fp8Scales describes which elements of a weight share a scale.
type fp8Scales struct {
	blocks bool
	block  [2]int // rows and columns; without blocks, the shape of the scales decides
	parts  int    // of the rows, in which blocks may begin anew
}

func (s *fp8Scales) weight(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	fail := func(of *tensor.Tensor, kind error, format string, args ...any) (*tensor.Tensor, error) {
		return nil, a.file.errorIn(of, 0, kind, format, args...)
	}
	switch t.DType {
	case tensor.F8_E4M3, tensor.F8_E5M2:
	case tensor.I8, tensor.U8:
		return packedFP4(a, t)
	default:
		return nil, nil
	}
	base, ok := strings.CutSuffix(t.Name, ".weight")
	stacked := !ok && len(t.Shape) == 3 && !s.blocks
	if !ok && !stacked {
		return fail(t, ErrUnsupported, "numbers of %v, whose name must end in .weight to find their scale, unless they are stacked with a scale for each matrix", t.DType)
	}
	scale, err := a.scale(t)
	switch {
	case err != nil:
		return nil, err
	case scale == nil:
		return fail(t, ErrFormat, "numbers of %v without a scale: no %s, no %s and no %s",
			t.DType, clip(t.Name+"_scale"), clip(t.Name+"_scale_inv"), clip(base+".scale"))
	}
	switch {
	case t.DType != tensor.F8_E4M3:
		return fail(t, ErrUnsupported, "numbers of %v with a scale; supported are those of %v", t.DType, tensor.F8_E4M3)
	case len(t.Shape) != 2 && !stacked:
		return fail(t, ErrUnsupported, "numbers of shape %v with a scale; supported are matrices", t.Shape)
	case t.Cols()%blockElems != 0:
		return fail(t, ErrUnsupported, "rows of %d numbers; supported are multiples of %d", t.Cols(), blockElems)
	case !isFloat(scale.DType) && scale.DType != tensor.F8_E8M0:
		return fail(scale, ErrFormat, "scales of %v, want F32, BF16, F16 or F8_E8M0", scale.DType)
	}
	w := &scaledFP8{codes: t, scale: scale}
	if !w.grid(s) {
		want := "one, or one for each of its rows, or of its matrices if it is stacked"
		if s.blocks {
			want = "one for each block of the size that " + configName + " says"
		}
		return fail(scale, ErrFormat, "scales of shape %v for %s of shape %v, want %s", scale.Shape, clip(t.Name), t.Shape, want)
	}
	for i := range scale.Elems() {
		if v := floatAt(scale, i); !(v >= 0 && v <= math.MaxFloat32/largestE4M3) {
			return nil, a.file.errorIn(scale, i*scale.DType.BlockBytes(), ErrFormat, "a scale of %v, want a number of at least 0 that keeps values in float32: the file is damaged; download it again", v)
		}
	}
	return &tensor.Tensor{Name: t.Name, DType: tensor.F8_E4M3_32, Shape: t.Shape, Source: w}, nil
}

// largestE4M3 is the largest number that E4M3 represents.
const largestE4M3 = 448

// scale returns the tensor of the scales of t, or nil if there is none.
func (a *assembly) scale(t *tensor.Tensor) (*tensor.Tensor, error) {
	names := []string{t.Name + "_scale", t.Name + "_scale_inv"}
	if base, ok := strings.CutSuffix(t.Name, ".weight"); ok {
		names = append(names, base+".scale")
	}
	var found *tensor.Tensor
	for _, name := range names {
		part := a.part(name)
		if part != nil && found != nil {
			return nil, a.file.errorIn(t, 0, ErrFormat, "two tensors of scales: %s and %s", clip(found.Name), clip(name))
		}
		if part != nil {
			found = part
		}
	}
	return found, nil
}

// packedFP4 returns the weight of FP4 numbers whose packed numbers are t, or nil if t has no scales.
func packedFP4(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	if !strings.HasSuffix(t.Name, ".weight") {
		return nil, nil
	}
	scales, err := a.scale(t)
	if scales == nil || err != nil {
		return nil, err
	}
	const packed = blockElems / 2
	switch {
	case len(t.Shape) != 2 || t.Shape[1]%packed != 0 || t.Shape[1] > maxPacked:
		return nil, a.file.errorIn(t, 0, ErrUnsupported, "packed numbers of shape %v; supported are rows and %d bytes for each block of a row", t.Shape, packed)
	case scales.DType != tensor.F8_E8M0 && scales.DType != tensor.U8:
		return nil, a.file.errorIn(scales, 0, ErrUnsupported, "scales in %v of packed numbers; supported are exponents of two, in F8_E8M0 or U8", scales.DType)
	case !slices.Equal(scales.Shape, []int{t.Shape[0], t.Shape[1] / packed}):
		return nil, a.file.errorIn(scales, 0, ErrFormat, "scales of shape %v, want %v, one for each block of %s", scales.Shape, []int{t.Shape[0], t.Shape[1] / packed}, clip(t.Name))
	}
	return &tensor.Tensor{Name: t.Name, DType: tensor.MXFP4, Shape: []int{t.Shape[0], 2 * t.Shape[1]}, Source: &microscaled{a.file, t, scales}}, nil
}

// A scaledFP8 is a weight of FP8 numbers and scales.
type scaledFP8 struct {
	codes, scale *tensor.Tensor
	part         int // rows after which blocks begin anew
	rows, cols   int // that share a scale
	across       int // scales per row
}

// grid determines which elements share a scale. It reports whether the number of scales matches.
func (w *scaledFP8) grid(s *fp8Scales) bool {
	n, k, shape := w.codes.Shape[0], w.codes.Cols(), w.scale.Shape
	w.part = max(1, w.codes.Rows())
	switch {
	case len(w.codes.Shape) == 3:
		w.rows, w.cols, w.across = max(1, w.codes.Shape[1]), max(1, k), 1
		return w.scale.Elems() == n && shape[0] == n
	case s.blocks:
		w.rows, w.cols = s.block[0], s.block[1]
		w.across = (k + w.cols - 1) / w.cols
		if len(shape) != 2 || shape[1] != w.across {
			return false
		}
		if shape[0] == groups(n, w.rows) {
			return true
		}
		w.part = max(1, n/s.parts)
		return n%s.parts == 0 && shape[0] == s.parts*groups(w.part, w.rows)
	case w.scale.Elems() == 1 && len(shape) <= 2:
		w.rows, w.cols, w.across = max(1, n), max(1, k), 1
		return true
	}
	w.rows, w.cols, w.across = 1, max(1, k), 1
	return len(shape) == 1 && shape[0] == n || len(shape) == 2 && shape[0] == n && shape[1] == 1
}

// Parts implements [tensor.Source].
func (w *scaledFP8) Parts() []*tensor.Tensor { return []*tensor.Tensor{w.codes, w.scale} }

// ReadRows implements [tensor.Source].
func (w *scaledFP8) ReadRows(dst []byte, lo, hi int) error {
	k := w.codes.Cols()
	codes := w.codes.Data[lo*k : hi*k]
	if err := tensor.CheckFinite(w.codes.DType, codes); err != nil {
		return err
	}
	for r := lo; r < hi; r++ {
		first := (r/w.part*groups(w.part, w.rows) + r%w.part/w.rows) * w.across
		for at := 0; at < k; {
			scale := math.Float32bits(floatAt(w.scale, first+at/w.cols))
			for end := min(k, (at/w.cols+1)*w.cols); at < end; at += blockElems {
				binary.LittleEndian.PutUint32(dst, scale)
				copy(dst[4:4+blockElems], codes[:blockElems])
				dst, codes = dst[4+blockElems:], codes[blockElems:]
			}
		}
	}
	return nil
}
