package modelfile

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// FP8 checkpoints have X.weight [N, K] of E4M3 numbers, and scales to multiply them by:
// X.weight_scale, or X.weight_scale_inv in DeepSeek's convention. A scale is for the whole weight,
// for a row, or for a block of rows and columns; the last blocks may be smaller. Stacked experts, X [E,
// N, K], have X_scale or X_scale_inv with one scale for each. The weights become [tensor.F8_E4M3_32].

// blockFP8 implements quant_method fp8.
func blockFP8(q *quantization) *convention {
	q.only("fmt", "e4m3", "e4m3", "float8_e4m3fn")
	block, ok := q.block("weight_block_size")
	return fp8(&fp8Scales{block: block, blocks: ok})
}

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
}

func (s *fp8Scales) weight(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	fail := func(of *tensor.Tensor, kind error, format string, args ...any) (*tensor.Tensor, error) {
		return nil, a.file.errorIn(of, 0, kind, format, args...)
	}
	if t.DType != tensor.F8_E4M3 && t.DType != tensor.F8_E5M2 {
		return nil, nil
	}
	base, ok := strings.CutSuffix(t.Name, ".weight")
	stacked := !ok && len(t.Shape) == 3 && !s.blocks
	if !ok && !stacked {
		return fail(t, ErrUnsupported, "numbers of %v, whose name must end in .weight to find their scale, unless they are stacked with a scale for each matrix", t.DType)
	}
	scale, inverse := a.part(t.Name+"_scale"), a.part(t.Name+"_scale_inv")
	switch {
	case scale == nil && inverse == nil:
		return fail(t, ErrFormat, "numbers of %v without a scale: no %s and no %s",
			t.DType, clip(base+".weight_scale"), clip(base+".weight_scale_inv"))
	case scale != nil && inverse != nil:
		return fail(t, ErrFormat, "two tensors of scales: %s and %s", clip(scale.Name), clip(inverse.Name))
	case scale == nil:
		scale = inverse
	}
	switch {
	case t.DType != tensor.F8_E4M3:
		return fail(t, ErrUnsupported, "numbers of %v with a scale; supported are those of %v", t.DType, tensor.F8_E4M3)
	case len(t.Shape) != 2 && !stacked:
		return fail(t, ErrUnsupported, "numbers of shape %v with a scale; supported are matrices", t.Shape)
	case t.Cols()%blockElems != 0:
		return fail(t, ErrUnsupported, "rows of %d numbers; supported are multiples of %d", t.Cols(), blockElems)
	case !isFloat(scale.DType):
		return fail(scale, ErrFormat, "scales of %v, want F32, BF16 or F16", scale.DType)
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

// A scaledFP8 is a weight of FP8 numbers and scales.
type scaledFP8 struct {
	codes, scale *tensor.Tensor
	rows, cols   int // that share a scale
	across       int // scales per row
}

// grid determines which elements share a scale. It reports whether the number of scales matches.
func (w *scaledFP8) grid(s *fp8Scales) bool {
	n, k, shape := w.codes.Shape[0], w.codes.Cols(), w.scale.Shape
	switch {
	case len(w.codes.Shape) == 3:
		w.rows, w.cols, w.across = max(1, w.codes.Shape[1]), max(1, k), 1
		return w.scale.Elems() == n && shape[0] == n
	case s.blocks:
		w.rows, w.cols = s.block[0], s.block[1]
		w.across = (k + w.cols - 1) / w.cols
		return len(shape) == 2 && shape[0] == (n+w.rows-1)/w.rows && shape[1] == w.across
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
		first := r / w.rows * w.across
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
